"""The exam of world models from outside."""
