"""What a key of the machine changes: `fencepost whatif`.

Every value is a machine of its own, replayed under each scheme; from the runs come ratios, the
knee of each curve and the Pareto front of speed against cost (docs/whatif.md).
"""
