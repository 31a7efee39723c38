"""The pages: what they show, where they lead."""
