//! The calls of replies from their pieces.

use super::*;

const P: &str = r#"{"city":"Paris"}"#;
const R: &str = r#"{"city":"Rome"}"#;

/// Index, id, name and arguments of a piece.
type Written<'a> = (Option<u64>, &'a str, &'a str, &'a str);

/// The calls after frames of pieces: id, name and arguments.
fn read(frames: &[&[Written<'_>]], is_cut: bool) -> Vec<(String, String, String)> {
    let mut calls = Calls::new(["weather", "ping"].map(str::to_owned));
    for frame in frames {
        for (order, (index, id, name, arguments)) in frame.iter().enumerate() {
            let piece = Piece {
                index: *index,
                order: (frame.len() > 1).then_some(order),
                id: Some(id),
                name: Some(name),
                arguments: Arguments::Letters(arguments),
            };
            calls.hear(&piece).unwrap();
        }
    }
    let calls = calls.finish(is_cut).into_iter();
    calls
        .map(|call| {
            (
                call.call_id.unwrap_or_default(),
                call.tool_name,
                call.arguments.as_str().to_owned(),
            )
        })
        .collect()
}

fn assert_calls(frames: &[&[Written<'_>]], expected: &[(&str, &str, &str)]) {
    let read = read(frames, false);
    let read: Vec<_> = read
        .iter()
        .map(|(id, name, arguments)| (&**id, &**name, &**arguments))
        .collect();
    assert_eq!(read, expected, "{frames:?}");
}

#[test]
fn a_piece_with_an_index_belongs_to_its_call() {
    let one = [("a", "weather", P)];
    let two = [("a", "weather", P), ("b", "weather", R)];
    let at = Some;
    // Pieces under an index, from any number on, with gaps, in any order.
    assert_calls(
        &[
            &[(at(0), "a", "weather", "")],
            &[(at(0), "", "", &P[..4])],
            &[(at(0), "", "", &P[4..])],
        ],
        &one,
    );
    assert_calls(
        &[&[(at(1), "a", "weather", "")], &[(at(1), "", "", P)]],
        &one,
    );
    assert_calls(
        &[&[(at(1), "a", "weather", P)], &[(at(3), "b", "weather", R)]],
        &two,
    );
    assert_calls(
        &[
            &[(at(0), "a", "weather", "")],
            &[(at(1), "b", "weather", "")],
            &[(at(1), "", "", R), (at(0), "", "", P)],
        ],
        &two,
    );
    // Another id, or another name, under one index.
    assert_calls(
        &[&[(at(0), "a", "weather", P)], &[(at(0), "b", "weather", R)]],
        &two,
    );
    assert_calls(
        &[&[(at(0), "", "weather", P)], &[(at(0), "", "ping", "{}")]],
        &[("", "weather", P), ("", "ping", "{}")],
    );
    assert_calls(
        &[&[(at(0), "", "ping", "{}")], &[(at(0), "", "ping", "{}")]],
        &[("", "ping", "{}"), ("", "ping", "{}")],
    );
    // One id for two calls of one frame, each under its index.
    assert_calls(
        &[&[(at(0), "a", "weather", P), (at(1), "a", "weather", R)]],
        &[("a", "weather", P), ("a", "weather", R)],
    );
}

#[test]
fn a_piece_without_an_index_belongs_to_its_call() {
    let one = [("a", "weather", P)];
    let two = [("a", "weather", P), ("b", "weather", R)];
    assert_calls(&[&[(None, "a", "weather", P)]], &one);
    assert_calls(
        &[&[(None, "a", "weather", P), (None, "b", "weather", R)]],
        &two,
    );
    assert_calls(
        &[
            &[(None, "a", "weather", "")],
            &[(None, "a", "", &P[..4])],
            &[(None, "a", "", &P[4..])],
        ],
        &one,
    );
    assert_calls(
        &[
            &[(None, "a", "weather", "")],
            &[(None, "b", "weather", "")],
            &[(None, "a", "", P), (None, "b", "", R)],
        ],
        &two,
    );
    assert_calls(
        &[
            &[(None, "a", "weather", &P[..4])],
            &[(None, "", "", &P[4..])],
            &[(None, "b", "weather", R)],
        ],
        &two,
    );
    assert_calls(
        &[
            &[(None, "", "weather", ""), (None, "", "ping", "")],
            &[(None, "", "", P), (None, "", "", "{}")],
        ],
        &[("", "weather", P), ("", "ping", "{}")],
    );
    assert_calls(
        &[&[(None, "", "ping", "{}")], &[(None, "", "ping", "{}")]],
        &[("", "ping", "{}"), ("", "ping", "{}")],
    );
}

#[test]
fn a_name_may_come_in_parts_or_again() {
    let one = [("a", "weather", P)];
    let at = Some(0);
    assert_calls(
        &[
            &[(at, "a", "wea", "")],
            &[(at, "", "ther", "")],
            &[(at, "", "", P)],
        ],
        &one,
    );
    assert_calls(&[&[(at, "a", "wea", "")], &[(at, "a", "weather", P)]], &one);
    assert_calls(
        &[
            &[(at, "a", "weather", "")],
            &[(at, "a", "weather", &P[..6])],
            &[(at, "a", "weather", &P[6..])],
        ],
        &one,
    );
    assert_calls(&[&[(at, "", "", P)]], &[("", "", P)]);
}

#[test]
fn arguments_count_once() {
    let one = [("a", "weather", P)];
    let at = Some(0);
    assert_calls(
        &[
            &[(at, "a", "weather", "")],
            &[(at, "", "", &P[..6])],
            &[(at, "", "", &P[6..])],
            &[(at, "", "", P)],
        ],
        &one,
    );
    assert_calls(
        &[&[(at, "a", "weather", P)], &[(at, "a", "weather", P)]],
        &one,
    );
    assert_calls(
        &[
            &[(at, "a", "weather", &P[..3])],
            &[(at, "", "", &P[..8])],
            &[(at, "", "", P)],
        ],
        &one,
    );
    let quoted = serde_json::to_string(P).unwrap();
    assert_calls(&[&[(at, "a", "weather", &quoted)]], &one);
    for nothing in ["", "null", " {} "] {
        assert_calls(&[&[(at, "a", "ping", nothing)]], &[("a", "ping", "{}")]);
    }
    // A last piece that is an object does not replace what is no JSON.
    assert_calls(
        &[&[(at, "a", "weather", "{'a':")], &[(at, "", "", "{}")]],
        &[("a", "weather", "\"{'a':{}\"")],
    );
}

#[test]
fn a_cut_call_never_runs() {
    let at = Some;
    for arguments in [P, &P[..6], ""] {
        let read = read(
            &[
                &[(at(0), "a", "weather", R)],
                &[(at(1), "b", "weather", arguments)],
            ],
            true,
        );
        assert_eq!(
            (&*read[0].2, &*read[1].2),
            (R, &*Json::of(&arguments).as_str().to_owned())
        );
    }
}

#[test]
fn arguments_as_an_object_are_the_arguments() {
    let mut calls = Calls::default();
    let piece = Piece {
        index: Some(0),
        order: None,
        id: Some("a"),
        name: Some("weather"),
        arguments: Arguments::Whole(P.to_owned()),
    };
    calls.hear(&piece).unwrap();
    calls.sign(0, "x".into()).unwrap();
    let call = calls.finish(false).remove(0);
    assert_eq!(
        (call.arguments.as_str(), &*call.signatures),
        (P, &["x".to_owned()][..])
    );
}
