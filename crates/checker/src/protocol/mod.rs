//! The persist-buffer protocol, explored exhaustively within bounds.
