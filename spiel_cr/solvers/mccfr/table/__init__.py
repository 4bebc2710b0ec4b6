"""Games that are never compiled: sampled CFR on a table of infosets that grows."""
