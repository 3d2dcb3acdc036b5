"""The study of training choices that make a world model Newtonian: head, noise and context."""
