//! The worker's version for Temporal (docs/operate/versions.md).

use temporalio_common::worker::{
    VersioningBehavior, WorkerDeploymentOptions, WorkerDeploymentVersion,
};

use crate::cli::{TurnVersion, VersionOptions};

/// Returns the version that a worker reports to Temporal, or `None` if the options have no deployment.
pub(super) fn deployment(options: &VersionOptions) -> Option<WorkerDeploymentOptions> {
    let build_id = options.build_id.as_ref()?;
    let Some(deployment) = &options.deployment else {
        return Some(WorkerDeploymentOptions::from_build_id(build_id.clone()));
    };
    let version = WorkerDeploymentVersion::builder()
        .deployment_name(deployment.clone())
        .build_id(build_id.clone())
        .build();
    let behaviour = match options.turns {
        TurnVersion::Pinned => VersioningBehavior::Pinned,
        TurnVersion::Newest => VersioningBehavior::AutoUpgrade,
    };
    Some(
        WorkerDeploymentOptions::new(version)
            .use_worker_versioning(true)
            .default_versioning_behavior(behaviour)
            .build(),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn options(deployment: Option<&str>, build_id: Option<&str>) -> VersionOptions {
        VersionOptions {
            deployment: deployment.map(str::to_owned),
            build_id: build_id.map(str::to_owned),
            turns: TurnVersion::Pinned,
        }
    }

    #[test]
    fn only_a_deployment_divides_the_turns() {
        assert!(deployment(&options(None, None)).is_none());
        let named = deployment(&options(None, Some("b1"))).unwrap();
        assert!(!named.use_worker_versioning);
        assert_eq!(named.version.build_id, "b1");
        let versioned = deployment(&options(Some("agents"), Some("b1"))).unwrap();
        assert!(versioned.use_worker_versioning);
        assert_eq!(
            versioned.default_versioning_behavior,
            Some(VersioningBehavior::Pinned)
        );
    }
}
