"""What a persist costs here: `measurement` runs the program and makes a document of its samples,
`interval` is what is sure of them, `simulated` replays the same program on a machine, `text` and
`plot` show both."""
