"""What the client does, without doing it: generators that yield effects, which a runner carries out.

Both clients, the one with ``await`` and the one without, run these same generators. So each rule stands here once.
"""
