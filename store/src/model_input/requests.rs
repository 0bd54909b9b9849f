//! The texts by which Everturn itself asks a model for a summary. Each text is the last message of its call, and is not
//! stored.

/// The instruction to the model when the agent's steps are used up.
pub const LAST_WORDS: &str = "\
You have used all the steps that this turn may have, so the work ends here, and you can call no more tools. Write a \
summary for the person: what was asked, what you have done, what you have found (with names, numbers and exact errors), \
and what is left to do. Do not say that you go on. Answer with this text alone, whatever form your answers have \
otherwise.";

/// The instruction to the model for a summary of older messages.
pub const SUMMARIZE: &str = "\
The conversation has become too long for you to be sent all of it again. Write a summary that will stand for everything \
above from now on; you will go on with the work from it, and from the newest messages.

Keep what is needed to go on: the task and what was asked of you in detail; what was decided, and why; what was done, \
with what it gave (names, paths, ids, numbers, exact errors); what did not work; what is still to be done, and the very \
next step. Say what you know and what you only assume.

Answer with the summary alone. Do not answer the conversation, and use no tools now.";
