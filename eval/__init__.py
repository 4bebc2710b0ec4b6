"""Judging, comparing and reporting: what people look at. Inside our code write
`from eval import ...`, never `import eval`, which would hide Python's builtin.
"""
