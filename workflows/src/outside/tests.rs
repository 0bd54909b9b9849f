//! Which answers are taken, kept and refused.

use super::*;

fn call(id: &str, kind: &ToolKind) -> PlannedCall {
    PlannedCall {
        execution_id: id.to_owned(),
        kind: kind.into(),
        approval_timeout_s: Some(60),
        input_hash: "hash".to_owned(),
        answers_from: AnswersFrom::Engine.into(),
        ..PlannedCall::default()
    }
}

fn answer(id: &str, decision: &str, hash: Option<&str>) -> ResolveApproval {
    ResolveApproval {
        execution_id: id.to_owned(),
        decision: decision.to_owned(),
        input_hash: hash.map(str::to_owned),
        ..ResolveApproval::default()
    }
}

#[test]
fn the_first_fitting_answer_counts() {
    let mut outside = Outside::default();
    outside.begin_step(&[call("a", &ToolKind::Worker)]);
    assert_eq!(
        outside.check(&answer("b", "approve", None), Through::Update),
        Err(Refusal::Unknown)
    );
    assert_eq!(
        outside.check(&answer("a", "approve", Some("other")), Through::Update),
        Err(Refusal::OtherInput)
    );
    assert_eq!(
        outside.check(&answer("a", "maybe", Some("hash")), Through::Update),
        Err(Refusal::Invalid("`decision` is `approve` or `deny`"))
    );
    assert_eq!(
        outside.resolve(answer("a", "approve", Some("other")), Through::Signal),
        Err(Refusal::OtherInput)
    );
    assert!(outside.answer("a").is_none());
    assert!(
        outside
            .resolve(answer("a", "deny", Some("hash")), Through::Signal)
            .is_ok()
    );
    let another = answer("a", "approve", Some("hash"));
    assert_eq!(
        outside.check(&another, Through::Update),
        Err(Refusal::BeingStored)
    );
    assert!(!outside.is_settled("a"));
    outside.answer_stored("a", Some(&saved("denied", None)));
    assert_eq!(
        outside.check(&another, Through::Update),
        Err(Refusal::Answered)
    );
    assert!(outside.is_settled("a"));
    assert_eq!(
        outside.resolve(answer("a", "approve", Some("hash")), Through::Signal),
        Err(Refusal::Answered)
    );
    assert_eq!(outside.answer("a").unwrap().decision, "deny");
    assert!(outside.waiting().is_empty());
}

#[test]
fn an_answer_may_come_before_its_call() {
    let mut outside = Outside::default();
    assert!(
        outside
            .resolve(answer("a", "approve", Some("hash")), Through::Signal)
            .is_ok()
    );
    outside.result_stored("a".to_owned());
    outside.begin_step(&[call("a", &ToolKind::Client)]);
    assert!(outside.answer("a").is_some() && outside.has_result("a"));
}

#[test]
fn what_is_kept_for_unknown_calls_is_bounded() {
    let mut outside = Outside::default();
    for number in 0..2 * MAX_EARLY {
        let early = answer(&number.to_string(), "approve", None);
        assert!(outside.resolve(early, Through::Signal).is_ok());
        outside.result_stored(number.to_string());
    }
    assert_eq!(
        (outside.early_answers.len(), outside.early_results.len()),
        (MAX_EARLY, MAX_EARLY)
    );
}

#[test]
fn a_change_of_the_status_is_told_once() {
    let mut outside = Outside::default();
    assert_eq!(outside.status_change(), None);
    outside.begin_step(&[call("a", &ToolKind::Worker), call("b", &ToolKind::Worker)]);
    assert_eq!(
        (outside.status_change(), outside.status_change()),
        (Some(true), None)
    );
    assert!(
        outside
            .resolve(answer("a", "approve", Some("hash")), Through::Signal)
            .is_ok()
    );
    assert_eq!(outside.status_change(), None, "another one waits");
    outside.expire("b");
    assert_eq!(
        (outside.status_change(), outside.status_change()),
        (Some(false), None)
    );
}

#[test]
fn too_late_is_answered() {
    let mut outside = Outside::default();
    outside.begin_step(&[call("a", &ToolKind::Client)]);
    assert_eq!(
        outside.waiting(),
        ["a"],
        "the approval; the client is not asked before it"
    );
    outside.expire("a");
    outside.answer_stored("a", Some(&saved("expired", None)));
    assert_eq!(
        outside.check(&answer("a", "approve", Some("hash")), Through::Update),
        Err(Refusal::Answered)
    );
}

#[test]
fn an_answer_without_a_save_is_refused_at_the_end_of_the_step() {
    let mut outside = Outside::default();
    let calls = ["a", "b", "c"].map(|id| call(id, &ToolKind::Worker));
    outside.begin_step(&calls);
    let mut take = |id| {
        let answer = answer(id, "approve", Some("hash"));
        outside.resolve(answer, Through::Update).unwrap()
    };
    let (stored, unstored) = (take("a"), take("b"));
    outside.answer_stored("a", Some(&saved("approved", None)));
    outside.expire("c");
    outside.end_step();
    assert_eq!(outside.refusal_of(stored), None);
    assert_eq!(
        outside.refusal_of(unstored),
        Some("approval_unknown: the turn ended before the answer was stored")
    );
    assert_eq!(outside.refused_answers().len(), 1, "nobody sent the expiry");
}

fn bound(id: &str, answers_from: &AnswersFrom) -> PlannedCall {
    PlannedCall {
        answers_from: answers_from.into(),
        ..call(id, &ToolKind::Worker)
    }
}

#[test]
fn an_answer_names_what_it_is_for() {
    let mut outside = Outside::default();
    outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
    for none in [None, Some("")] {
        for through in [Through::Update, Through::Signal] {
            let answer = answer("a", "approve", none);
            assert_eq!(outside.check(&answer, through), Err(Refusal::NoHash));
        }
    }
    let signal = answer("a", "approve", Some("hash"));
    assert!(outside.resolve(signal, Through::Signal).is_ok());
}

#[test]
fn signals_can_be_switched_off() {
    let mut outside = Outside::default();
    let newer = AnswersFrom::Unknown("newer".to_owned());
    outside.begin_step(&[bound("a", &AnswersFrom::Gateway), bound("b", &newer)]);
    for id in ["a", "b"] {
        let signal = answer(id, "approve", Some("hash"));
        let refused = outside.resolve(signal.clone(), Through::Signal);
        assert_eq!(refused, Err(Refusal::BySignal));
        assert_eq!(outside.check(&signal, Through::Update), Ok(()));
    }
    let shown = outside.refused_answers();
    assert!(
        shown[0].starts_with("a: approval_not_through_gateway: "),
        "{shown:?}"
    );
}

#[test]
fn a_call_whose_answer_the_store_refuses_waits_on() {
    let mut outside = Outside::default();
    outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
    let first = answer("a", "approve", Some("hash"));
    let number = outside.resolve(first.clone(), Through::Update).unwrap();
    outside.refuse("a", &ApprovalRefusal::NeedsOther);
    assert_eq!(outside.waiting(), ["a"]);
    let why = outside.refusal_of(number).unwrap();
    assert!(why.starts_with("approval_needs_other: "), "{why}");
    let again = outside.resolve(first, Through::Update).unwrap();
    assert_eq!(
        outside.refusal_of(again),
        None,
        "the same answer, by somebody else"
    );
    for number in 0..2 * MAX_REFUSED {
        let wrong = answer("a", &number.to_string(), Some("hash"));
        assert!(outside.resolve(wrong, Through::Signal).is_err());
    }
    assert_eq!(outside.refused_answers().len(), MAX_REFUSED);
}

fn saved(decision: &str, answer_id: Option<String>) -> SavedApproval {
    SavedApproval {
        decision: decision.to_owned(),
        answer_id,
    }
}

#[test]
fn the_sender_of_a_replaced_answer_is_told() {
    let approve = answer("a", "approve", Some("hash"));
    for (stored, is_told) in [
        (saved("approved", Some(ids::answer_id(&approve))), false),
        (
            saved("denied", Some("a/of another person".to_owned())),
            true,
        ),
        // Also for an answer with the same decision: its input may differ.
        (
            saved("approved", Some("a/of another person".to_owned())),
            true,
        ),
        (saved("approved", None), false),
        (saved("expired", None), true),
    ] {
        let mut outside = Outside::default();
        outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
        let number = outside.resolve(approve.clone(), Through::Update).unwrap();
        outside.answer_stored("a", Some(&stored));
        assert!(outside.is_settled("a"));
        let why = outside.refusal_of(number).unwrap_or_default();
        assert_eq!(
            why.starts_with("approval_replaced: "),
            is_told,
            "{stored:?}"
        );
    }
    let mut outside = Outside::default();
    outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
    outside.expire("a");
    outside.answer_stored("a", Some(&saved("expired", None)));
    assert_eq!(outside.refused_answers(), [""; 0]);
    // Another run has ended the turn, so the store has saved no answer.
    let mut outside = Outside::default();
    outside.begin_step(&[bound("a", &AnswersFrom::Engine)]);
    let number = outside.resolve(approve, Through::Update).unwrap();
    outside.answer_stored("a", None);
    let why = outside.refusal_of(number).unwrap_or_default();
    assert!(why.starts_with("approval_unknown: "), "{why}");
}

/// A running tool asks: the call waits again, for another hash. The answer may come before the turn knows the question.
#[test]
fn a_call_waits_for_each_question_of_its_tool() {
    let mut outside = Outside::default();
    let asks = bound("a", &AnswersFrom::Engine);
    outside.begin_step(std::slice::from_ref(&asks));
    let approve = answer("a", "approve", Some("hash"));
    outside.resolve(approve.clone(), Through::Update).unwrap();
    outside.answer_stored(
        "a",
        Some(&saved("approved", Some(ids::answer_id(&approve)))),
    );
    assert!(outside.waiting().is_empty());
    let early = answer("a", "approve", Some("first question"));
    assert_eq!(
        outside.check(&early, Through::Update),
        Err(Refusal::Unknown),
        "the gateway sends the answer again"
    );
    outside.resolve(early.clone(), Through::Signal).unwrap();
    outside.await_person(&asks, "first question".to_owned());
    assert_eq!(outside.answer("a"), Some(&early));
    assert_eq!(outside.awaited_hash("a"), "first question");
    outside.answer_stored("a", Some(&saved("approved", Some(ids::answer_id(&early)))));
    outside.await_person(&asks, "second question".to_owned());
    assert_eq!(outside.waiting(), ["a"]);
    assert_eq!(
        outside.check(&early, Through::Update),
        Err(Refusal::OtherInput)
    );
    let second = answer("a", "deny", Some("second question"));
    let number = outside.resolve(second.clone(), Through::Update).unwrap();
    outside.await_person(&asks, "second question".to_owned());
    assert_eq!(
        outside.answer("a"),
        Some(&second),
        "the note of a known question"
    );
    outside.answer_stored("a", Some(&saved("declined", None)));
    assert_eq!(outside.refusal_of(number), None, "also through the engine");
}
