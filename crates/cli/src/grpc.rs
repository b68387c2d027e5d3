//! gRPC messages from JSON, by a `.proto` file or a descriptor set.
//!
//! Owns what a schema file is and which methods can be called.

use std::ffi::OsStr;
use std::fs::File;
use std::path::Path;

use loadline_load::spec::read_bounded;
use loadline_load::{LoadError, LoadSpec};
use prost_reflect::prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor};

/// Replaces the JSON of a load with `proto` by messages; others stay as they are.
/// Errors: [`LoadError::Plan`] names the key, with a hint.
pub fn encode_calls(load: &mut LoadSpec) -> Result<(), LoadError> {
    let Some(path) = load.proto.clone() else {
        return Ok(());
    };
    let schema = read_schema(&path).map_err(|why| LoadError::Plan {
        field: "proto",
        why: format!("{}: {why}", path.display()),
    })?;
    load.encode_calls(&|path, json| encode_message(&schema, path, json))
}

fn read_schema(path: &Path) -> Result<DescriptorPool, String> {
    let unread = |error| format!("{error}; a path is relative to the file that names it");
    if path.extension() == Some(OsStr::new("proto")) {
        // The compiler would say that it is in no include path.
        File::open(path).map_err(unread)?;
        let beside = path.parent().unwrap_or(path);
        let files = protox::compile([path], [beside]).map_err(|error| {
            format!(
                "{error}; imports are searched in its directory: for others make a descriptor set with protoc --include_imports -o api.binpb"
            )
        })?;
        return DescriptorPool::from_file_descriptor_set(files).map_err(|error| error.to_string());
    }
    let bytes = read_bounded(path).map_err(unread)?;
    DescriptorPool::decode(bytes.as_slice()).map_err(|error| {
        format!("{error}; it must end in .proto or be what protoc --include_imports -o writes")
    })
}

fn encode_message(schema: &DescriptorPool, path: &str, json: &str) -> Result<Vec<u8>, String> {
    let method = find_method(schema, path)?;
    let json = if json.trim().is_empty() { "{}" } else { json };
    let mut reader = serde_json::Deserializer::from_str(json);
    let message = DynamicMessage::deserialize(method.input(), &mut reader);
    let message = message.and_then(|message| reader.end().map(|()| message));
    let message = message.map_err(|error| {
        format!(
            "the body of {path} is no {}: {error}; write --body '{{\"{}\": ...}}'",
            method.input().full_name(),
            method
                .input()
                .fields()
                .next()
                .map_or_else(String::new, |field| field.json_name().to_owned()),
        )
    })?;
    Ok(message.encode_to_vec())
}

fn find_method(schema: &DescriptorPool, path: &str) -> Result<MethodDescriptor, String> {
    let mut methods = schema
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let name = |method: &MethodDescriptor| {
        format!("/{}/{}", method.parent_service().full_name(), method.name())
    };
    let Some(method) = methods.find(|method| name(method) == path) else {
        let known: Vec<_> = schema
            .services()
            .flat_map(|service| service.methods().map(|m| name(&m)).collect::<Vec<_>>())
            .collect();
        return Err(format!(
            "it has no method {path}; write one as the path of the URL: {}",
            known.join(", ")
        ));
    };
    if method.is_client_streaming() {
        return Err(format!(
            "{path} takes a stream of messages, and one is sent; let a tool that can make the load: --load 'TOOL ...'"
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
             /pkg.Pings/Unary, /pkg.Pings/Download, /pkg.Pings/Upload"
        );
        assert!(why("/pkg.Pings/Unary", r#"{"idd": 7}"#).contains("is no pkg.Ping"));
        assert!(why("/pkg.Pings/Unary", r#"{"id": 7"#).contains(r#"write --body '{"id": ...}'"#));
        assert!(why("/pkg.Pings/Upload", "{}").contains("--load"));
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
