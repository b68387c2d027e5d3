//! Whether application and dependencies can share the networks of a trial: checked before anything
//! starts.
//!
//! Owns the networks that an engine can join. Makes no network;
//! [`dependencies`](crate::dependencies) decides who makes which, and this follows its order: the
//! first member of a network makes it, and the proxy makes the application's if a dependency with
//! toxics comes first. Facts: docker-run(1), `--network container:NAME`; podman-run(1), `--network
//! ns:PATH`.

use loadline_protocol::{EngineKind, NetworkMode, RunRefusal};

#[derive(Debug, Clone, Copy)]
pub struct NetworkMember<'a> {
    pub name: &'a str,
    /// The engine that holds it; `None` is a program.
    pub engine: Option<EngineKind>,
    pub is_proxied: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NetworkMaker {
    Machine,
    Loadline,
    Container(EngineKind),
}

/// Checks the networks of a trial with an application in this engine (`None`: a program). Errors:
/// [`RunRefusal`] names the first that could not join.
pub fn check_networks(
    network: NetworkMode,
    dependencies: &[NetworkMember<'_>],
    application: Option<EngineKind>,
) -> Result<(), RunRefusal> {
    let mut front = (network == NetworkMode::Host).then_some(NetworkMaker::Machine);
    let mut behind = None;
    for member in dependencies {
        let place = if member.is_proxied {
            &mut behind
        } else {
            &mut front
        };
        join_network(place, member.engine).map_err(|refusal| RunRefusal {
            what: format!("the dependency {}: {}", member.name, refusal.what),
            ..refusal
        })?;
        if member.is_proxied {
            front.get_or_insert(NetworkMaker::Loadline);
        }
    }
    join_network(&mut front, application)
}

fn join_network(
    network: &mut Option<NetworkMaker>,
    engine: Option<EngineKind>,
) -> Result<(), RunRefusal> {
    let own = engine.map_or(NetworkMaker::Loadline, NetworkMaker::Container);
    let maker = *network.get_or_insert(own);
    let is_docker = own == NetworkMaker::Container(EngineKind::Docker);
    if is_docker && maker != own && maker != NetworkMaker::Machine {
        Err(docker_cannot())
    } else {
        Ok(())
    }
}

pub(crate) fn docker_cannot() -> RunRefusal {
    RunRefusal::new(
        "joining the network of the dependencies",
        "docker can only put a container into the network of another of its containers",
        "make the first dependency a docker image too, without toxics, or let podman start all: engine = \"podman\"",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCKER: Option<EngineKind> = Some(EngineKind::Docker);
    const PODMAN: Option<EngineKind> = Some(EngineKind::Podman);

    fn of(
        network: NetworkMode,
        all: &[(Option<EngineKind>, bool)],
        app: Option<EngineKind>,
    ) -> bool {
        let member = |&(engine, is_proxied)| NetworkMember {
            name: "db",
            engine,
            is_proxied,
        };
        let all: Vec<NetworkMember<'_>> = all.iter().map(member).collect();
        check_networks(network, &all, app).is_ok()
    }

    #[test]
    fn docker_joins_its_own_and_podman_any() {
        let own = |all: &[_], app| of(NetworkMode::Own, all, app);
        assert!(own(&[], DOCKER));
        assert!(own(&[(None, false), (None, true)], PODMAN));
        assert!(own(&[(DOCKER, false)], DOCKER));
        assert!(!own(&[(None, false)], DOCKER));
        assert!(!own(&[(PODMAN, false)], DOCKER));
        assert!(
            own(&[(DOCKER, false), (None, false)], DOCKER),
            "a program joins any"
        );
        assert!(!own(&[(None, false), (DOCKER, false)], None));
    }

    #[test]
    fn the_proxy_makes_the_network_where_it_comes_first() {
        let own = |all: &[_], app| of(NetworkMode::Own, all, app);
        assert!(!own(&[(DOCKER, true)], DOCKER));
        assert!(own(&[(DOCKER, false), (DOCKER, true)], DOCKER));
        assert!(
            !own(&[(DOCKER, true), (DOCKER, false)], None),
            "a separate one comes too late"
        );
        assert!(
            !own(&[(None, true), (DOCKER, true)], None),
            "behind the proxy, too"
        );
        assert!(
            of(NetworkMode::Host, &[(DOCKER, true)], DOCKER),
            "the machine's is there"
        );
    }
}
