"""What a client knows of a conversation, and how it follows from the frames of its stream. No I/O lives here."""
