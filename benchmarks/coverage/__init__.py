"""Tables and figures of the papers, and which of them the kept results reproduce."""
