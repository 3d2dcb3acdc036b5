"""Which tables and figures of the papers the kept results answer."""
