//! Saves: the first end wins, and every act is closed (invariant 3, idempotent saves, and invariant 6, done once).

use everturn_proto::{
    Thread, ids,
    turn::{LlmCompleteState, SaveEnd, SaveObserve, SaveSteer, SaveThought, save_request::Batch},
    words::{AgentExecutionStatus, Effect, FailureCode, FinishReason, ToolStatus},
};
use everturn_store::{
    Conversations, EventWriter, Missing, ModelCalls, PageLimit, Saved, StepClaims, StoreError,
    ToolClaim, ToolClaims, TurnInputs,
};

use super::{
    Backend,
    fixture::{Turn, agent, data, json, state, tenant, tool_end},
};

pub async fn a_turn_with_one_tool_writes_six_events_and_few_rows(backend: &impl Backend) {
    let turn = Turn::new(backend.open().await, "c", "m");
    let before = backend.row_count().await;
    turn.begin_as_run("hello").await.unwrap();
    turn.store.claim_step(&turn.step(0), None).await.unwrap();
    let saved = turn.asks(0, "let me look", &[Effect::Read]).await;
    assert_eq!(saved.sealed, [turn.sealed(0)]);
    assert_eq!(turn.runs(0, 0).await.sealed, []);
    turn.store.claim_step(&turn.step(1), None).await.unwrap();
    turn.complete(1, "the answer", &[]).await;
    let saved = turn.end(1, AgentExecutionStatus::Completed).await;
    assert_eq!(saved.sealed, [turn.sealed(1)]);
    assert_eq!(
        (saved.result.status(), saved.result.last_sequence),
        (AgentExecutionStatus::Completed, 6)
    );

    let expected = [
        "user_message",
        "thought",
        "act",
        "observe",
        "assistant_message",
        "complete",
    ];
    assert_eq!(turn.types().await, expected);
    let written = backend.row_count().await - before;
    assert!(written <= 20, "{written} rows");

    let (act, observe) = (turn.data("act").await, turn.data("observe").await);
    assert_eq!(act["execution_id"], turn.execution_id(0, 0));
    assert_eq!(act["execution_id"], observe["execution_id"]);
    assert_eq!(act["call_id"], observe["call_id"]);
    assert_eq!(
        (&observe["result"], &observe["duration_ms"]),
        (&"found".into(), &12.into())
    );
    let complete = turn.data("complete").await;
    let counts =
        ["steps", "input_tokens", "output_tokens"].map(|name| complete[name].as_u64().unwrap());
    assert_eq!(counts, [2, 200, 20]);
    let answer = turn.data("assistant_message").await;
    assert_eq!(
        answer["message_id"],
        ids::assistant_message_id(&turn.execution, 1)
    );
    assert_eq!(turn.conversation().await.message_count, 2);
}

pub async fn a_batch_is_saved_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let first = turn.asks(0, "look", &[Effect::Read]).await;
    assert_eq!(
        turn.thought(0).await,
        first,
        "the repeat seals again: its first caller may have died"
    );
    turn.runs(0, 0).await;
    let rows = backend.row_count().await;
    let again = turn.observe(0, 0, "late failure").await;
    assert_eq!(
        (again.result.status(), again.result.last_sequence),
        (AgentExecutionStatus::Running, 4)
    );
    // A key that names another step must not observe the same tool again.
    let execution_id = turn.execution_id(0, 0);
    turn.save(
        5,
        Batch::Observe(SaveObserve {
            execution_id,
            failure: None,
        }),
    )
    .await;
    turn.steer("s", "x").await;
    turn.take("s").await;
    assert_eq!(
        backend.row_count().await,
        rows + 2,
        "one message and its event"
    );
    turn.complete(1, "answer", &[]).await;
    let end = turn.end(1, AgentExecutionStatus::Completed).await;
    let ended = end.ended.as_ref().expect("this save has ended it");
    assert_eq!((ended.calls, ended.output_tokens), (2, 20));
    assert_eq!(ended.agent, agent().name);
    let repeated = Saved { ended: None, ..end };
    assert_eq!(turn.end(1, AgentExecutionStatus::Completed).await, repeated);
    assert_eq!(turn.events().await.len(), 7);
}

pub async fn racing_saves_of_one_batch_store_it_once(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.complete(0, "look", &[Effect::Read, Effect::Once])
        .await;
    let handles = [backend.open().await, backend.open().await];
    let mut racers = Vec::new();
    for number in 0..16 {
        let mut turn = turn.clone();
        turn.store = handles[number % 2].clone();
        racers.push(async move { turn.thought(0).await });
    }
    let tasks: Vec<_> = racers.into_iter().map(tokio::spawn).collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().result.last_sequence, 4);
    }
    assert_eq!(
        turn.types().await,
        ["user_message", "thought", "act", "act"]
    );
}

pub async fn the_first_end_wins_and_nothing_follows(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "look", &[Effect::Read]).await;
    turn.complete(1, "answer", &[]).await;
    turn.queue("s").await;
    turn.end(1, AgentExecutionStatus::Cancelled).await;
    let events = turn.events().await;
    let rows = backend.row_count().await;
    for late in [
        turn.end(1, AgentExecutionStatus::Completed).await,
        turn.end(2, AgentExecutionStatus::Failed).await,
        turn.thought(1).await,
        turn.observe(0, 0, "").await,
        turn.take("s").await,
    ] {
        assert_eq!(late.result.status(), AgentExecutionStatus::Cancelled);
        assert_eq!(late.result.last_sequence as usize, events.len());
    }
    assert_eq!(turn.events().await, events);
    assert_eq!(backend.row_count().await, rows);
}

/// Cancels a turn that has five tools: pending, running, running with effect `once`, ended and observed.
async fn cancelled_with_tools<B: Backend>(backend: &B) -> Turn<B::Store> {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let effects = [
        Effect::Read,
        Effect::Read,
        Effect::Once,
        Effect::Once,
        Effect::Read,
    ];
    turn.asks(0, "look", &effects).await;
    for index in [1, 2, 3] {
        turn.store
            .claim_tool(&turn.tool(0, index), "a")
            .await
            .unwrap();
    }
    turn.store
        .finish_tool(&turn.tool(0, 3), tool_end("\"done\""))
        .await
        .unwrap();
    turn.runs(0, 4).await;
    turn.end(1, AgentExecutionStatus::Cancelled).await;
    turn
}

pub async fn cancel_closes_every_open_act(backend: &impl Backend) {
    let turn = cancelled_with_tools(backend).await;
    let events = turn.events().await;
    let of = |kind: &str| -> Vec<String> {
        let found = events.iter().filter(|event| event.event_type == kind);
        found
            .map(|event| data(event)["execution_id"].as_str().unwrap().to_owned())
            .collect()
    };
    let (acts, mut observes) = (of("act"), of("observe"));
    assert_eq!(acts.len(), 5);
    observes.rotate_left(1);
    assert_eq!(
        acts, observes,
        "an observe for each act; the fifth came first"
    );
    assert_eq!(events.last().unwrap().event_type, "cancelled");
    let context = turn
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await
        .unwrap()
        .messages;
    let results = &context[1].tool_results;
    let errors: Vec<_> = results.iter().map(|result| result.is_error).collect();
    assert_eq!(
        errors,
        [true, true, true, false, false],
        "results stand in call order"
    );
}

pub async fn cancel_ends_every_record(backend: &impl Backend) {
    let turn = cancelled_with_tools(backend).await;
    let expected = [
        ToolStatus::Cancelled,
        ToolStatus::Cancelled,
        ToolStatus::OutcomeUnknown,
        ToolStatus::Completed,
        ToolStatus::Completed,
    ];
    for (index, status) in expected.into_iter().enumerate() {
        let claim = turn.store.claim_tool(&turn.tool(0, index), "a").await;
        let ToolClaim::Ended(record) = claim.unwrap() else {
            panic!("tool {index} is open")
        };
        assert_eq!(record.status, status, "tool {index}");
    }
    // A tool that was cancelled stays so, whatever its activity says later.
    let late = turn
        .store
        .finish_tool(&turn.tool(0, 1), tool_end("\"late\""))
        .await
        .unwrap();
    assert_eq!(late.status, ToolStatus::Cancelled);
}

pub async fn cancel_keeps_the_text_so_far(backend: &impl Backend) {
    let store = backend.open().await;
    let partial = LlmCompleteState {
        finish: FinishReason::Cancelled.into(),
        ..state("so f", vec![])
    };
    for (message, saved, expected) in [("m1", None, "so f"), ("m2", Some("all of it"), "all of it")]
    {
        let turn = Turn::begun(store.clone(), message, message).await;
        turn.store
            .save_partial(&turn.step(0), partial.clone())
            .await
            .unwrap();
        if let Some(text) = saved {
            turn.complete(0, text, &[]).await;
        }
        let saved = turn.end(0, AgentExecutionStatus::Cancelled).await;
        assert_eq!(saved.sealed, [turn.sealed(0)]);
        assert_eq!(
            turn.types().await,
            ["user_message", "assistant_message", "cancelled"]
        );
        let answer = turn.data("assistant_message").await;
        assert_eq!(
            (&answer["content"], &answer["partial"]),
            (&expected.into(), &true.into())
        );
        assert_eq!(turn.data("cancelled").await["reason"], "why");
        assert_eq!(
            turn.store
                .conversation(&tenant(), message)
                .await
                .unwrap()
                .unwrap()
                .message_count,
            2
        );
        assert_eq!(
            turn.store
                .context(message, &Thread::Conversation, PageLimit::rows(10), None)
                .await
                .unwrap()
                .messages[1]
                .content,
            expected
        );
    }
}

pub async fn a_failed_end_does_not_read_the_partial_text(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.store
        .save_partial(&turn.step(0), state("so f", vec![]))
        .await
        .unwrap();
    turn.end(0, AgentExecutionStatus::Failed).await;
    assert_eq!(turn.types().await, ["user_message", "error"]);
    assert_eq!(turn.data("error").await["code"], "a_code");
}

pub async fn an_end_by_a_time_out_keeps_the_text_so_far(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.store
        .save_partial(&turn.step(0), state("so f", vec![]))
        .await
        .unwrap();
    let end = SaveEnd {
        status: AgentExecutionStatus::Failed.into(),
        code: Some(FailureCode::LlmTimeout.into()),
        message: Some("too slow".into()),
        hooks: None,
    };
    turn.save(0, Batch::End(end)).await;
    let types = turn.types().await;
    assert_eq!(types, ["user_message", "assistant_message", "error"]);
    let answer = turn.data("assistant_message").await;
    assert_eq!(
        (&answer["content"], &answer["partial"], &answer["finish"]),
        (&"so f".into(), &true.into(), &"cancelled".into())
    );
}

pub async fn a_tool_that_left_no_end_is_ended_by_its_observe(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read, Effect::Once, Effect::Once])
        .await;
    turn.store.claim_tool(&turn.tool(0, 0), "a").await.unwrap();
    turn.store.claim_tool(&turn.tool(0, 1), "a").await.unwrap();
    for (index, expected) in [
        ToolStatus::Failed,
        ToolStatus::OutcomeUnknown,
        ToolStatus::Failed,
    ]
    .into_iter()
    .enumerate()
    {
        turn.observe(0, index, "it timed out").await;
        let record = turn
            .store
            .finish_tool(&turn.tool(0, index), tool_end("1"))
            .await
            .unwrap();
        assert_eq!(record.status, expected, "the observe ended it first");
        let end = record.end.unwrap();
        assert!(end.is_error && end.result.as_str().contains("it timed out"));
    }
}

pub async fn a_tools_plan_events_are_saved_before_its_observe(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[Effect::Read, Effect::Read]).await;
    let plan = r#"{"plan_id":"p","title":"t","steps":[{"step_number":1,"description":"d","status":"pending"}]}"#;
    let start = r#"{"plan_id":"p","step_number":1,"description":"d"}"#;
    let rows = backend.row_count().await;
    for (index, event_type, data) in [(0, "work_plan", plan), (1, "step_start", start)] {
        let mut end = tool_end("1");
        end.events = vec![(event_type.into(), json(data))];
        turn.store
            .finish_tool(&turn.tool(0, index), end)
            .await
            .unwrap();
        turn.observe(0, index, "").await;
    }
    let types = turn.types().await;
    assert_eq!(
        types[4..],
        ["work_plan", "observe", "step_start", "observe"]
    );
    assert_eq!(
        backend.row_count().await,
        rows + 7,
        "four events, one plan and two checkpoints"
    );
    assert_eq!(turn.data("work_plan").await["plan_id"], "p");
    let running = "DELETE FROM work_plans WHERE CAST(steps AS TEXT) LIKE '%\"running\"%'";
    backend.run(running).await;
    assert_eq!(
        backend.row_count().await,
        rows + 6,
        "the event changed the plan, which was stored before it"
    );
}

pub async fn steer_joins_the_running_turn(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.queue("s").await;
    let saved = turn.take("s").await;
    assert_eq!(saved.result.last_sequence, 2);
    let events = turn.events().await;
    assert_eq!(
        (events[1].message_id.as_str(), events[1].event_type.as_str()),
        ("s", "user_message")
    );
    assert_eq!(data(&events[1])["content"], "say s");
    assert_eq!(turn.conversation().await.message_count, 2);
    assert!(!turn.queue("s").await.is_waiting());
    let nothing = SaveSteer {
        message_id: "none".into(),
    };
    let refused = turn
        .store
        .save(&turn.request(0, Batch::Steer(nothing)))
        .await;
    assert!(matches!(
        refused,
        Err(StoreError::NotFound {
            what: Missing::Message,
            ..
        })
    ));
}

pub async fn parallel_results_stand_in_call_order(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    turn.asks(0, "", &[const { Effect::Read }; 8]).await;
    let tasks: Vec<_> = (0..8)
        .map(|index| {
            let turn = turn.clone();
            tokio::spawn(async move { turn.runs(0, 7 - index).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let row = turn
        .store
        .context("c", &Thread::Conversation, PageLimit::rows(10), None)
        .await
        .unwrap()
        .messages
        .pop()
        .unwrap();
    let results: Vec<_> = row
        .tool_results
        .iter()
        .map(|result| &result.execution_id)
        .collect();
    let calls: Vec<_> = row
        .tool_calls
        .iter()
        .map(|call| &call.execution_id)
        .collect();
    assert_eq!(results, calls);
}

pub async fn saves_of_unknown_things_are_refused(backend: &impl Backend) {
    let turn = Turn::begun(backend.open().await, "c", "m").await;
    let thought = || Batch::Thought(SaveThought {});
    assert!(matches!(
        turn.store.save(&turn.request(0, thought())).await,
        Err(StoreError::NotFound {
            what: Missing::Checkpoint,
            ..
        })
    ));
    turn.complete(1, "ahead", &[Effect::Read]).await;
    assert!(matches!(
        turn.store.save(&turn.request(1, thought())).await,
        Err(StoreError::NotFound {
            what: Missing::Checkpoint,
            ..
        })
    ));
    let mut request = turn.request(0, thought());
    request.agent_execution_id = "run_unknown".into();
    assert!(matches!(
        turn.store.save(&request).await,
        Err(StoreError::NotFound { .. })
    ));
    let mut request = turn.request(0, thought());
    request.message_id = "another".into();
    assert!(matches!(
        turn.store.save(&request).await,
        Err(StoreError::Conflict(_))
    ));
    let mut request = turn.request(0, thought());
    request.batch = None;
    assert!(matches!(
        turn.store.save(&request).await,
        Err(StoreError::Conflict(_))
    ));
    let observe = SaveObserve {
        execution_id: "exec_none".into(),
        failure: None,
    };
    let refused = turn
        .store
        .save(&turn.request(0, Batch::Observe(observe)))
        .await;
    assert!(matches!(refused, Err(StoreError::NotFound { .. })));
    assert_eq!(turn.events().await.len(), 1);
}
