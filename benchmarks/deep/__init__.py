"""Deep CFR, its successors and self-play: what they cost and come to."""
