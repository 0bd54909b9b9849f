"""The stream's wire: server-sent events, and when to connect again. No I/O lives here."""
