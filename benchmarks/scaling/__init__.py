"""What more steps, width and data buy a world model: one study."""
