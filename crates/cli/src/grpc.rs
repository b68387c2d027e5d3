//! gRPC messages from JSON, by a `.proto` file, a descriptor set or what a running instance says.
//!
//! Owns what a schema is and which methods can be called.

mod files;
mod reflection;

use std::ffi::OsStr;
use std::path::Path;

use loadline_load::spec::read_bounded;
use loadline_load::{LoadError, LoadSpec, instance_url};
use prost_reflect::prost::Message;
use prost_reflect::prost_types::{FileDescriptorProto, FileDescriptorSet};
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};

use files::SchemaFiles;

/// Without one it is proto2.
const SYNTAXES: [&str; 3] = ["", "proto2", "proto3"];

/// Replaces the JSON of a load with `proto` by messages; others stay as they are.
/// Errors: [`LoadError::Plan`] names the key, with a hint.
pub fn encode_calls(load: &mut LoadSpec) -> Result<(), LoadError> {
    let Some(path) = load.proto.clone() else {
        return Ok(());
    };
    let schema = match instance_url(&path) {
        Some(url) => reflection::ask_schema(load, url),
        None => read_schema(&path),
    };
    let schema = schema.map_err(|why| LoadError::Plan {
        field: "proto",
        why: format!("{}: {why}", path.display()),
    })?;
    load.encode_calls(&|path, json| encode_message(&schema, path, json))
}

fn read_schema(path: &Path) -> Result<DescriptorPool, String> {
    let unread = |error| {
        format!(
            "{error}; a path is relative to the file that names it; an instance starts with http://"
        )
    };
    if path.extension() == Some(OsStr::new("proto")) {
        let files = SchemaFiles::beside_file(path).map_err(unread)?;
        let files = files.compile().map_err(|error| {
            format!(
                "{error}; imports are read only from its directory: for others make a descriptor set with protoc --include_imports -o api.binpb"
            )
        })?;
        return pool_files(files.file);
    }
    let bytes = read_bounded(path).map_err(unread)?;
    let set = FileDescriptorSet::decode(bytes.as_slice()).map_err(|error| {
        format!("{error}; it must end in .proto or be written by protoc --include_imports -o")
    })?;
    pool_files(set.file)
}

fn pool_files(files: Vec<FileDescriptorProto>) -> Result<DescriptorPool, String> {
    // prost-reflect 0.16.5 panics at others.
    if let Some(file) = files.iter().find(|file| !SYNTAXES.contains(&file.syntax())) {
        let (name, syntax) = (file.name(), file.syntax());
        return Err(format!(
            "{name} uses {syntax}, but loadline reads proto2 and proto3; name a proto3 file with the same fields and numbers"
        ));
    }
    let mut pool = DescriptorPool::new();
    let added = pool.add_file_descriptor_protos(files);
    added.map(|()| pool).map_err(|error| {
        format!("{error}; make a descriptor set with protoc --include_imports -o api.binpb")
    })
}

fn encode_message(schema: &DescriptorPool, path: &str, json: &str) -> Result<Vec<u8>, String> {
    let method = find_method(schema, path)?;
    let json = if json.trim().is_empty() { "{}" } else { json };
    let mut reader = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(method.input(), &mut reader);
    let message = message.and_then(|message| reader.end().map(|()| message));
    let message = message.map_err(|error| {
        let input = method.input();
        let (name, fields) = (input.full_name(), input.fields());
        let fields: Vec<_> = fields
            .map(|f| format!("\"{}\": ...", f.json_name()))
            .collect();
        let fields = fields.join(", ");
        format!("the body of {path} is not a {name}: {error}; write --body '{{{fields}}}'")
    })?;
    Ok(message.encode_to_vec())
}

fn find_method(schema: &DescriptorPool, path: &str) -> Result<MethodDescriptor, String> {
    let methods = || {
        let services = schema.services();
        services.flat_map(|service| service.methods().collect::<Vec<_>>())
    };
    let name = |method: &MethodDescriptor| {
        format!("/{}/{}", method.parent_service().full_name(), method.name())
    };
    let Some(method) = methods().find(|method| name(method) == path) else {
        let known = methods().filter(|m| !m.is_client_streaming());
        let known: Vec<_> = known.map(|m| name(&m)).collect();
        let known = known.join(", ");
        let refusal = format!("it has no method {path}; write one as the path of the URL: {known}");
        return Err(refusal);
    };
    if method.is_client_streaming() {
        return Err(format!(
            "{path} takes a stream of messages, but loadline sends one; use a tool that can stream: --drive 'TOOL ...' --slo 'load passes'"
        ));
    }
    Ok(method)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const PROTO: &str = r#"
        syntax = "proto3";
        package pkg;
        message Ping { int32 id = 1; string name = 2; }
        service Pings {
          rpc Unary(Ping) returns (Ping);
          rpc Download(Ping) returns (stream Ping);
          rpc Upload(stream Ping) returns (Ping);
        }
    "#;

    fn encode(path: &str, json: &str) -> Result<Vec<u8>, String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("api.proto");
        fs::write(&file, PROTO).unwrap();
        let schema = read_schema(&file).unwrap();
        let set = directory.path().join("api.binpb");
        fs::write(&set, schema.encode_to_vec()).unwrap();
        let from_text = encode_message(&schema, path, json);
        let from_set = encode_message(&read_schema(&set).unwrap(), path, json);
        assert_eq!(from_text, from_set);
        from_text
    }

    #[test]
    fn json_becomes_the_bytes_of_its_message() {
        let bytes = encode("/pkg.Pings/Unary", r#"{"id": 7, "name": "a"}"#);
        assert_eq!(bytes.unwrap(), [8, 7, 18, 1, b'a']);
        assert!(encode("/pkg.Pings/Download", "").unwrap().is_empty());
    }

    #[test]
    fn what_no_method_takes_is_refused_with_what_does() {
        let why = |path: &str, json: &str| encode(path, json).unwrap_err();
        assert_eq!(
            why("/pkg.Pings/Unari", "{}"),
            "it has no method /pkg.Pings/Unari; write one as the path of the URL: \
             /pkg.Pings/Unary, /pkg.Pings/Download"
        );
        assert!(why("/pkg.Pings/Unary", r#"{"idd": 7}"#).contains("is not a pkg.Ping"));
        assert!(
            why("/pkg.Pings/Unary", r#"{"id": 7"#)
                .contains(r#"write --body '{"id": ..., "name": ...}'"#)
        );
        assert!(why("/pkg.Pings/Upload", "{}").contains("--drive"));
    }

    #[test]
    fn files_of_editions_are_refused() {
        let file = FileDescriptorProto {
            name: Some("new.proto".to_owned()),
            syntax: Some("editions".to_owned()),
            ..FileDescriptorProto::default()
        };
        let refusal = pool_files(vec![file]).unwrap_err();
        assert!(refusal.starts_with("new.proto uses editions, but"));
    }

    #[test]
    fn an_import_leads_to_no_file_elsewhere() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("api");
        fs::create_dir(&directory).unwrap();
        let file = directory.join("api.proto");
        for other in [
            place.path().join("up.proto"),
            directory.join("beside.proto"),
        ] {
            fs::write(other, "syntax = \"proto3\"; message Other {}").unwrap();
        }
        let fifo = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            directory.join("fifo.proto"),
            fifo.0,
            fifo.1,
            0,
        )
        .unwrap();
        let absolute = place.path().join("up.proto");
        let read = |import: &str| {
            let text = PROTO.replace("package", &format!("import \"{import}\"; package"));
            fs::write(&file, text).unwrap();
            read_schema(&file).map(drop)
        };
        assert_eq!(read("beside.proto"), Ok(()));
        assert_eq!(read("google/protobuf/empty.proto"), Ok(()));
        for import in [
            "../up.proto",
            absolute.to_str().unwrap(),
            "fifo.proto",
            "/dev/zero",
        ] {
            let why = read(import).expect_err(import);
            assert!(
                why.contains("imports are read only from its directory"),
                "{why}"
            );
        }
    }

    #[test]
    fn a_schema_that_cannot_be_read_is_refused_with_its_path() {
        let mut load = LoadSpec {
            proto: Some("/nowhere/api.proto".into()),
            ..LoadSpec::default()
        };
        let refusal = encode_calls(&mut load).unwrap_err().to_string();
        assert!(
            refusal.contains("/nowhere/api.proto: No such file"),
            "{refusal}"
        );
    }
}
