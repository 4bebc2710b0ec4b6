"""The table's page: contents, style and script, which stand beside this file."""

import base64
import hashlib

from ..reporting import html_page


def make() -> tuple[str, str]:
    """The page, and the content security policy that it is sent with.

    Returns:
      HTML without anything of a match: the page asks for that; and the policy, under
      which no script but the page's runs, and nothing is loaded from elsewhere.
    """
    html, css = (html_page.beside(__file__, kind) for kind in ("html", "css"))
    script = html_page.script(__file__)
    body = f"<style>{css}</style>{html}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; "
        "style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return html_page.page("A table", body, script), policy
