//! Load from generator pods: where they run, replacement of a lost one, and that none stays.

use super::*;

use loadline_analysis::record::LoadFrom;

fn with_generators(
    server: &ApiServer,
    (slots, share_nodes): (u32, u32),
    largest: Option<InstanceSize>,
) -> Result<KubernetesHost, RunRefusal> {
    let wanted = Wanted {
        generators: NonZeroU32::new(2),
        share_nodes: NonZeroU32::new(share_nodes).unwrap(),
        ..wanted_cluster(slot_number(slots))
    };
    host_of(server.address, &wanted, largest)
}

fn nodes_of(server: &ApiServer, is: fn(&str) -> bool) -> Vec<String> {
    let state = server.state();
    let placed = state.placed.iter().filter(|(job, _)| is(job));
    placed.map(|(_, node)| node.clone()).collect()
}

fn large_nodes(count: usize) -> Vec<SimulatedNode> {
    let all = simulated_nodes(count, "n", "Xeon").into_iter();
    all.map(|host| SimulatedNode { cpu: 3000, ..host })
        .collect()
}

#[test]
fn load_comes_from_other_nodes_and_every_record_says_from_which() {
    let server = ApiServer::start_server(large_nodes(4), 0);
    let experiment = repeated_experiment(4);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = with_generators(&server, (2, 1), largest).unwrap();
    let (answer, stored) = run(&mut host, experiment, u32::MAX);
    assert_eq!(answer.unwrap().len(), 8);
    let generators = nodes_of(&server, ApiServerState::is_generator);
    assert_eq!(generators.len(), 4, "each slot keeps its two");
    let trials = nodes_of(&server, |job| !ApiServerState::is_generator(job));
    assert!(trials.len() >= 10, "{trials:?}");
    let meets = trials.iter().find(|node| generators.contains(node));
    assert_eq!(meets, None, "{generators:?}");
    for record in &stored {
        for load in &record.evidence.load {
            let Some(LoadFrom::Generators { generators: of }) = &load.load_from else {
                panic!("{:?}", load.load_from);
            };
            assert_eq!(of.len(), 2);
            assert!(of.iter().all(|g| generators.contains(&g.node)), "{of:?}");
        }
    }
    let machine = host.host_machine().cluster.unwrap();
    assert_eq!(machine.generators, NonZeroU32::new(2));
    drop(host);
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
}

#[test]
fn a_generator_that_is_gone_is_replaced_before_the_next_trial() {
    let server = ApiServer::start_server(large_nodes(2), 0);
    server.state().kills_generators = 1;
    let experiment = repeated_experiment(4);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = with_generators(&server, (1, 1), largest).unwrap();
    let (answer, _) = run(&mut host, experiment, u32::MAX);
    assert_eq!(answer.unwrap().len(), 8);
    assert_eq!(server.state().kills_generators, 0, "nothing was tried");
    assert_eq!(nodes_of(&server, ApiServerState::is_generator).len(), 4);
    drop(host);
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
}

#[test]
fn one_node_is_enough_where_it_may_be_shared() {
    let server = ApiServer::start_server(large_nodes(1), 0);
    let experiment = repeated_experiment(1);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = with_generators(&server, (1, 2), largest).unwrap();
    let (answer, _) = run(&mut host, experiment, u32::MAX);
    assert_eq!(answer.unwrap().len(), 2);
    drop(host);
    assert_eq!(wait_for_leftovers(&server), [""; 0]);
}

#[test]
fn a_trial_in_whose_pod_the_load_is_made_says_so() {
    let server = ApiServer::start_server(simulated_nodes(1, "n", "Xeon"), 0);
    let experiment = repeated_experiment(1);
    let largest = searches::largest_trial_size(&experiment);
    let mut host = host_on_server(&server, slot_number(1), largest).unwrap();
    let (_, stored) = run(&mut host, experiment, u32::MAX);
    let loads = stored.iter().flat_map(|record| &record.evidence.load);
    let from: Vec<_> = loads.map(|load| load.load_from.clone()).collect();
    assert!(!from.is_empty());
    assert!(
        from.iter().all(|from| *from == Some(LoadFrom::OwnPod)),
        "{from:?}"
    );
}
