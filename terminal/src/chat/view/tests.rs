//! Frames in, rows out.

use serde_json::{Value, json};

use super::*;

/// A conversation that gets frames, and what is printed of it.
struct Shown {
    state: Conversation,
    view: View,
    look: Look,
    sequence: u64,
    printed: Vec<String>,
}

impl Shown {
    fn new() -> Self {
        Self {
            state: Conversation::default(),
            view: View::default(),
            look: Look {
                width: 40,
                has_markdown: true,
                is_live: true,
                gateway: "http://gateway".to_owned(),
            },
            sequence: 0,
            printed: Vec::new(),
        }
    }

    fn event(&mut self, mut data: Value) -> &mut Self {
        self.sequence += 1;
        data["sequence_number"] = self.sequence.into();
        data["created_at"] = format!("2026-11-21T12:00:{:02}Z", self.sequence).into();
        if data["message_id"].is_null() {
            data["message_id"] = "m".into();
        }
        self.frame(data)
    }

    fn frame(&mut self, data: Value) -> &mut Self {
        self.state.apply(None, data);
        self
    }

    /// The rows that are printed for good now.
    fn settled(&mut self) -> Vec<String> {
        let rows: Vec<_> = self.view.settle(&self.state, &self.look);
        let rows: Vec<_> = rows.iter().map(Line::text).collect();
        self.printed.extend(rows.clone());
        rows
    }

    /// The live rows, in a window of this height. Rows that must be printed for good go to `printed`.
    fn live(&mut self, height: usize) -> Vec<String> {
        let (settled, rows) = self
            .view
            .live(&self.state, &self.look, Now::default(), height);
        self.printed.extend(settled.iter().map(Line::text));
        rows.iter().map(Line::text).collect()
    }
}

fn act(execution: &str, tool: &str) -> Value {
    json!({"type": "act", "tool_name": tool, "tool_input": {"a": 1}, "execution_id": execution, "call_id": execution})
}

fn observe(execution: &str, result: &Value) -> Value {
    json!({"type": "observe", "tool_name": "x", "result": result, "execution_id": execution, "duration_ms": 1234})
}

fn text(generation: u64, text: &str) -> Value {
    json!({"type": "text_start", "agent_execution_id": "run", "step": 0, "part": "text", "generation": generation,
           "text": text, "message_id": "m"})
}

#[test]
fn a_turn_is_printed_once_and_in_order() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "hello"}));
    assert_eq!(shown.settled(), ["", "you> hello"]);
    shown.event(json!({"type": "thought", "thought": "I look.", "reasoning": "Where?"}));
    shown.event(act("1", "slow")).event(act("2", "quick"));
    assert_eq!(shown.settled(), ["· Where?", "I look."]);
    assert_eq!(shown.live(20), ["⠋ slow {\"a\":1}", "⠋ quick {\"a\":1}"]);
    shown.event(observe("2", &json!("fine")));
    assert!(shown.settled().is_empty(), "the first call still runs");
    assert_eq!(
        shown.live(20),
        ["⠋ slow {\"a\":1}", "✓ quick {\"a\":1}  1.2 s", "  └ fine"]
    );
    shown.event(observe("1", &json!({"n": 7})));
    assert_eq!(
        shown.settled(),
        [
            "✓ slow {\"a\":1}  1.2 s",
            "  └ {\"n\":7}",
            "✓ quick {\"a\":1}  1.2 s",
            "  └ fine"
        ]
    );
    shown.event(json!({"type": "assistant_message", "content": "**Good**.", "message_id": "a", "finish": "stop"}));
    shown.event(json!({"type": "complete", "steps": 2, "usage": {"input_tokens": 7, "output_tokens": 3}, "cost_usd": "0.01"}));
    assert_eq!(
        shown.settled(),
        [
            "Good.",
            "✓ done · 2 steps · 7 + 3 tokens · $0.01",
            "  · 7.0 s"
        ]
    );
    assert!(shown.settled().is_empty() && shown.live(20).is_empty());
    let usage = json!({"input_tokens": 7, "output_tokens": 3, "estimated": true});
    shown.event(json!({"type": "complete", "steps": 2, "usage": usage, "cost_usd": "0.01"}));
    let rows = shown.settled().join(" ");
    let words: Vec<_> = rows.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains("≈ 7 + 3 tokens · ≈ $0.01"), "{text}");
}

#[test]
fn a_call_has_its_title_and_its_name() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    let titled = |execution: &str, tool: &str, title: &str| {
        let mut call = act(execution, tool);
        call["title"] = title.into();
        call
    };
    shown.event(titled("1", "find", "Search for cats"));
    shown.event(titled("2", "delegate", "Ask reader"));
    shown.event(json!({"type": "sub_agent_start", "agent_execution_id": "run2", "agent": "reader", "task": "t",
        "execution_id": "2", "call_id": "2"}));
    shown.settled();
    let live = ["⠋ Search for cats · find", "⠋ Ask reader: t"];
    assert_eq!(shown.live(20), live);
}

#[test]
fn what_a_sub_agent_does_stands_below_its_call() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    for n in ["1", "2"] {
        shown.event(act(n, "delegate"));
        shown.event(json!({"type": "sub_agent_start", "agent_execution_id": format!("run{n}"), "agent": "reader",
            "task": format!("t{n}"), "execution_id": n, "call_id": n}));
    }
    for n in ["2", "1"] {
        let mut call = act(&format!("{n}1"), "look");
        call["agent_execution_id"] = format!("run{n}").into();
        shown.event(call);
    }
    shown.settled();
    let live = [
        "⠋ delegate → reader: t1",
        "  │ ⠋ look {\"a\":1}",
        "⠋ delegate → reader: t2",
        "  │ ⠋ look {\"a\":1}",
    ];
    assert_eq!(shown.live(20), live);
    assert_eq!(shown.live(3)[0], "… 2 more rows above");
    let mut end = observe("11", &json!("seen"));
    end["agent_execution_id"] = "run1".into();
    shown.event(end).event(observe("1", &json!("done")));
    assert_eq!(
        shown.settled(),
        [
            "✓ delegate → reader: t1  1.2 s",
            "  │ ✓ look {\"a\":1}  1.2 s",
            "  │   └ seen"
        ]
    );
    assert_eq!(shown.live(20), live[2..]);
}

#[test]
fn what_a_sub_agent_writes_stands_below_what_it_has_done() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    let start = |run: &str, execution: &str| {
        json!({"type": "sub_agent_start", "agent_execution_id": run,
        "agent": "reader", "task": run, "execution_id": execution, "call_id": execution})
    };
    shown.event(act("1", "delegate")).event(start("outer", "1"));
    for (execution, tool) in [("2", "look"), ("3", "delegate")] {
        let mut call = act(execution, tool);
        call["agent_execution_id"] = "outer".into();
        shown.event(call);
    }
    shown.event(start("inner", "3"));
    let mut call = act("4", "look");
    call["agent_execution_id"] = "inner".into();
    shown.event(call);
    for (run, caller) in [("outer", "1"), ("inner", "3")] {
        let mut writes = text(0, &format!("{run} writes"));
        writes["agent_execution_id"] = run.into();
        writes["parent_tool_call_id"] = caller.into();
        shown.frame(writes);
    }
    shown.settled();
    let live = [
        "⠋ delegate → reader: outer",
        "  │ ⠋ look {\"a\":1}",
        "  │ ⠋ delegate → reader: inner",
        "  │   │ ⠋ look {\"a\":1}",
        "  │   │ inner writes",
        "  │ outer writes",
    ];
    assert_eq!(shown.live(20), live);
}

#[test]
fn a_text_is_rendered_by_blocks_and_replaced_without_a_trace() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    shown.settled();
    shown.frame(text(1, "# One\n\n**tw"));
    assert_eq!(shown.live(20), ["One", "", "**tw"]);
    shown.frame(text(2, "Other"));
    assert_eq!(shown.live(20), ["Other"]);
    shown.event(json!({"type": "assistant_message", "content": "Other text.", "message_id": "a"}));
    assert_eq!(shown.settled(), ["Other text."]);
}

#[test]
fn a_text_that_needs_more_room_is_printed_from_its_beginning() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    shown.settled();
    shown.printed.clear();
    shown.frame(text(1, "One.\n\nTwo.\n\nThree."));
    assert_eq!(shown.live(3), ["Three."]);
    assert_eq!(shown.printed, ["One.", "", "Two.", ""]);
    shown.event(json!({"type": "assistant_message", "content": "One.\n\nTwo.\n\nThree.", "message_id": "a"}));
    assert_eq!(shown.settled(), ["Three."]);

    // The reasoning comes in an event of its own before the answer, or with the text before tools.
    for last in [
        json!({"type": "assistant_message", "content": "One.\n\nTwo.\n\nThree.", "message_id": "a"}),
        json!({"type": "thought", "thought": "One.\n\nTwo.\n\nThree.", "reasoning": "Count."}),
    ] {
        let mut shown = Shown::new();
        shown.event(json!({"type": "user_message", "content": "go"}));
        shown.settled();
        shown.frame(text(1, "One.\n\nTwo.\n\nThree."));
        shown.live(3);
        let mut expected = vec!["Three."];
        if last["type"] == "assistant_message" {
            shown.event(json!({"type": "thought", "thought": "", "reasoning": "Count."}));
            expected.insert(0, "· Count.");
        }
        shown.event(last);
        assert_eq!(shown.settled(), expected);
    }

    // A later try that says something else cannot take back what is printed.
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    shown.settled();
    shown.frame(text(1, "One.\n\nTwo.\n\nThree."));
    shown.live(3);
    shown.frame(text(2, "Four."));
    assert_eq!(shown.live(3), ["Four."]);
    let last = shown.printed.last().unwrap();
    assert!(
        shown
            .printed
            .iter()
            .any(|row| row.starts_with("· the model was asked again")),
        "{last}"
    );
}

#[test]
fn a_plan_ticks_and_is_printed_when_it_is_over() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "go"}));
    let step =
        |n: u64| json!({"step_number": n, "description": format!("s{n}"), "status": "pending"});
    shown.event(
        json!({"type": "work_plan", "plan_id": "p", "title": "Plan", "steps": [step(1), step(2)]}),
    );
    shown.event(
        json!({"type": "step_end", "plan_id": "p", "step_number": 1, "status": "completed"}),
    );
    shown.event(json!({"type": "step_start", "plan_id": "p", "step_number": 2}));
    assert_eq!(shown.settled(), ["", "you> go"]);
    assert_eq!(shown.live(20), ["Plan", "  ☑ s1", "  ▶ s2"]);
    shown.event(json!({"type": "thought", "thought": "On."}));
    assert_eq!(shown.settled(), ["On."], "a plan holds nothing back");
    shown.event(json!({"type": "cancelled", "reason": "stop"}));
    assert_eq!(
        shown.settled(),
        ["Plan", "  ☑ s1", "  ▶ s2", "■ cancelled: stop · 5.0 s"]
    );
}

#[test]
fn an_error_says_what_to_do() {
    let mut shown = Shown::new();
    shown.look.width = 80;
    shown.event(json!({"type": "user_message", "content": "go"}));
    shown.event(act("1", "t"));
    shown
        .event(json!({"type": "error", "code": "llm_timeout", "message": "The model was silent."}));
    let rows = shown.settled();
    assert_eq!(rows[2], "? t {\"a\":1} · it may or may not have happened");
    assert_eq!(rows[3], "✗ failed: llm_timeout · 2.0 s");
    assert_eq!(rows[4], "  The model was silent.");
    assert_eq!(
        rows[5],
        "  What to do: http://gateway/docs/errors/llm_timeout"
    );
}

#[test]
fn after_a_reset_what_comes_anew_is_printed_anew() {
    let mut shown = Shown::new();
    shown.event(json!({"type": "user_message", "content": "one"}));
    shown.event(json!({"type": "thought", "thought": "lost"}));
    shown.settled();
    shown.frame(json!({"type": "reset", "from_sequence": 2}));
    shown.view.reset(2);
    shown.sequence = 1;
    shown.event(json!({"type": "thought", "thought": "found"}));
    assert_eq!(shown.settled(), ["found"]);
}

#[test]
fn only_the_turns_that_were_asked_for() {
    let mut shown = Shown::new();
    shown.view = View::of_own_turns();
    shown.view.show_turn("mine");
    for (turn, said) in [("other", "a"), ("mine", "b")] {
        shown.event(json!({"type": "user_message", "content": "go", "message_id": turn}));
        shown.event(json!({"type": "assistant_message", "content": said, "message_id": format!("{turn}-answer")}));
        shown.event(json!({"type": "complete", "message_id": turn}));
    }
    assert_eq!(shown.settled(), ["b", "✓ done · 2.0 s"]);
    assert_eq!(outcome(&shown.state, "mine"), Some(EndKind::Complete));
    assert_eq!(outcome(&shown.state, "unknown"), None);
}

#[test]
fn hostile_texts_stay_texts_in_every_item() {
    let bad = "\u{1b}[2J\u{202e}\u{7}";
    let mut shown = Shown::new();
    shown.event(
        json!({"type": "user_message", "content": bad, "attachments": [{"file_name": bad}]}),
    );
    shown.event(json!({"type": "thought", "thought": bad, "reasoning": bad}));
    shown.event(
        json!({"type": "act", "tool_name": bad, "tool_input": {bad: bad}, "execution_id": "1"}),
    );
    shown.event(json!({"type": "approval_requested", "execution_id": "1"}));
    shown.live(20);
    shown.event(json!({"type": "approval_resolved", "execution_id": "1", "decision": "denied", "reason": bad, "resolved_by": bad}));
    shown.event(json!({"type": "observe", "execution_id": "1", "tool_name": bad, "result": bad}));
    shown.event(json!({"type": "work_plan", "title": bad, "steps": [{"step_number": 1, "description": bad}]}));
    shown.event(json!({"type": "model_fallback", "from": bad, "to": bad, "code": bad}));
    shown.frame(text(1, bad));
    shown.printed.extend(
        shown
            .view
            .live(&shown.state, &shown.look, Now::default(), 20)
            .1
            .iter()
            .map(Line::text),
    );
    shown.event(json!({"type": "assistant_message", "content": format!("# {bad}\n\n[{bad}](http://{bad})\n\n```{bad}\n{bad}\n```"), "message_id": "a"}));
    shown.event(json!({"type": "error", "code": bad, "message": bad}));
    shown.settled();
    assert!(shown.printed.len() > 15);
    for row in &shown.printed {
        let has_bad = |c: char| c.is_control() || c == '\u{202e}';
        assert!(!row.contains(has_bad), "{row:?}");
    }
}
