"""One module a topic; each check looks at one answer's facts and yields what it finds."""
