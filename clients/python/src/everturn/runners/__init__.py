"""Carry out the effects of the core, with httpx: one with ``await``, one without. No rule of the client lives here."""
