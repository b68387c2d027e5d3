//! Where an engine keeps the files of images and containers on this machine, as it reports it.
//!
//! Owns the paths; others look at the files. Facts: the overlay drivers of podman and docker
//! (`UpperDir`, `LowerDir`); docker with containerd's store reports no layer.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

/// Part of the output of `inspect`, for an image and for a container.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(super) struct GraphDriver {
    data: Option<BTreeMap<String, Option<String>>>,
}

impl GraphDriver {
    pub(super) fn layers(&self) -> Vec<PathBuf> {
        let Some(data) = &self.data else {
            return Vec::new();
        };
        let of = |name: &str| data.get(name).cloned().flatten().unwrap_or_default();
        let all = [of("UpperDir"), of("LowerDir")].join(":");
        let all = all.split(':').filter(|path| path.starts_with('/'));
        all.map(PathBuf::from)
            .filter(|path| path.is_dir())
            .collect()
    }
}

/// Where the files of a container lie, from `container inspect`: its own layer, and the volumes that
/// the engine made for it.
pub(super) fn container_directories(text: &str) -> Vec<PathBuf> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct InspectedContainer {
        #[serde(default)]
        graph_driver: GraphDriver,
        #[serde(default)]
        mounts: Vec<ContainerMount>,
    }
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "PascalCase", default)]
    struct ContainerMount {
        r#type: String,
        source: PathBuf,
    }
    let all: Vec<InspectedContainer> = serde_json::from_str(text).unwrap_or_default();
    let of_one = |container: InspectedContainer| {
        let data = container.graph_driver.data.unwrap_or_default();
        let layer = data.get("UpperDir").cloned().flatten().map(PathBuf::from);
        let volumes = container.mounts.into_iter();
        let volumes = volumes.filter(|m| m.r#type == "volume");
        layer.into_iter().chain(volumes.map(|mount| mount.source))
    };
    let places = all.into_iter().flat_map(of_one);
    places.filter(|place| place.is_absolute()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_containers_own_files_lie_in_its_layer_and_its_volumes() {
        let podman = r#"[{"Id":"a","GraphDriver":{"Name":"overlay","Data":{"LowerDir":"/s/l","UpperDir":"/s/a/diff"}},"Mounts":[{"Type":"bind","Source":"/var/lib/loadline/x","Destination":"/tmp"},{"Type":"volume","Name":"v","Source":"/s/volumes/v/_data","Destination":"/data"}]}]"#;
        let names = |places: Vec<PathBuf>| places.iter().map(|p| p.display().to_string()).collect();
        let found: Vec<String> = names(container_directories(podman));
        assert_eq!(found, ["/s/a/diff", "/s/volumes/v/_data"]);
        // Docker with containerd's store says no layer.
        let docker = r#"[{"Id":"a","GraphDriver":{"Name":"overlayfs","Data":null},"Mounts":[]}]"#;
        let found: Vec<String> = names(container_directories(docker));
        assert_eq!(found, Vec::<String>::new());
        let found: Vec<String> = names(container_directories("no JSON"));
        assert_eq!(found, Vec::<String>::new());
    }
}
