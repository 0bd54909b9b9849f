//! `probe = …` of a tool: the tool that tells whether a call with an unknown outcome has happened.

use everturn_tools::Effect;
use toml::Spanned;

use crate::checker::Checker;

/// The known facts of a tool that a table names as a probe.
pub(super) struct Asked<'a> {
    /// The effect; `None` when only the server knows the effect. The worker refuses a probe that does not only read.
    pub(super) effect: Option<&'a Effect>,
    pub(super) has_probe: bool,
}

/// Checks a probe. `effect` is the effect of the tool with the probe. `asked` is `None` for a tool that `source` does not
/// have.
pub(super) fn check_probe(
    check: &mut Checker<'_>,
    probe: &Spanned<String>,
    source: &str,
    effect: &Effect,
    asked: Option<Asked<'_>>,
) {
    let name = probe.get_ref();
    if *effect != Effect::Once {
        check.wrong(
            probe,
            format!(
                "`probe` belongs to a tool with the effect `once`; a tool with the effect `{effect}` runs again instead"
            ),
        );
        return;
    }
    let Some(asked) = asked else {
        check.wrong(
            probe,
            format!("the probe `{name}` is no tool of {source}; a probe is another tool of the same source"),
        );
        return;
    };
    if let Some(effect) = asked.effect.filter(|effect| **effect != Effect::Read) {
        check.wrong(
            probe,
            format!(
                "the probe `{name}` has the effect `{effect}`; a probe only reads, so set `effect = \"read\"` if the tool changes nothing"
            ),
        );
    }
    if asked.has_probe {
        check.wrong(
            probe,
            format!("the probe `{name}` has a probe itself; a probe that fails leaves the outcome unknown"),
        );
    }
}
