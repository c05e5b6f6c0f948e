"""Programs of runtimes that interpret or compile while they run, and what recording them costs."""
