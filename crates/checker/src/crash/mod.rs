//! The states that a power cut can leave of a recorded program, and whether they satisfy the user's check.
