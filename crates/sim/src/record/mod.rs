//! The record of a program: what it did to memory, read frame by frame and never trusted unchecked.
