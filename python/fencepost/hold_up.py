"""The energy that a hold-up source has to have, so that what is volatile can be saved."""

# Energy to move a byte from the last-level cache to persistent memory: Alshboul et al., "BBB:
# Simplifying Persistent Programming using Battery-Backed Buffers" (HPCA 2021); recalled. The same
# is taken for a byte in a switch, for which nobody has published a figure.
NJ_PER_BYTE = 11.228


def microjoules(held: int, nj_per_byte: float = NJ_PER_BYTE) -> float:
    """Energy to bring so many bytes to the media."""
    return held * nj_per_byte / 1000
