//! The schema of a running service, as it describes itself (gRPC server reflection).
//!
//! Source: github.com/grpc/grpc/blob/master/doc/server-reflection.md. Both versions have the same
//! messages. Owns which questions are asked; the connection is crate `load`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use loadline_load::http2::GrpcAnswer;
use loadline_load::{ErrorKind, LoadError, LoadSpec, LoadTarget, call_service};
use prost_reflect::DescriptorPool;
use prost_reflect::prost::{Message, Oneof};
use prost_reflect::prost_types::FileDescriptorProto;

use super::pool_files;

const VERSIONS: [&str; 2] = ["v1", "v1alpha"];
/// For all calls together.
const WITHIN: Duration = Duration::from_secs(10);
const MOST_CALLS: u32 = 1024;
const LARGEST_SCHEMA: usize = 32 << 20;
/// UNIMPLEMENTED.
const NO_SUCH_METHOD: u16 = 12;

#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "::prost_reflect::prost")]
struct Request {
    #[prost(oneof = "Question", tags = "3, 4, 7")]
    question: Option<Question>,
}

#[derive(Clone, PartialEq, Oneof)]
#[prost(prost_path = "::prost_reflect::prost")]
enum Question {
    #[prost(string, tag = "3")]
    File(String),
    #[prost(string, tag = "4")]
    Symbol(String),
    /// What it holds is not used.
    #[prost(string, tag = "7")]
    Services(String),
}

#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "::prost_reflect::prost")]
struct Reply {
    #[prost(message, optional, tag = "4")]
    files: Option<FilesReply>,
    #[prost(message, optional, tag = "6")]
    services: Option<ServicesReply>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "::prost_reflect::prost")]
struct FilesReply {
    #[prost(bytes = "vec", repeated, tag = "1")]
    descriptors: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
#[prost(prost_path = "::prost_reflect::prost")]
struct ServicesReply {
    /// Messages with a name as field 1, which is what prost makes of a `String`.
    #[prost(message, repeated, tag = "1")]
    names: Vec<String>,
}

/// Asks the instance at the URL, with the trust of this load. Errors: Sentences with their hint.
pub fn ask_schema(load: &LoadSpec, url: &str) -> Result<DescriptorPool, String> {
    let target: LoadTarget = url.parse().map_err(|error: LoadError| error.to_string())?;
    let tls = load.tls_to(&target);
    let until = Instant::now() + WITHIN;
    gather_schema(&|path, question| {
        let left = until.saturating_duration_since(Instant::now());
        call_service(&target, tls.as_ref(), (path, question), left).map_err(|error| {
            let why = match error {
                LoadError::Target { why, .. } | LoadError::UnknownHost { why, .. } => why,
                other => other.to_string(),
            };
            format!("{why}; check that one instance listens there, or name its .proto file")
        })
    })
}

/// Sends a message to the method of a path.
type Caller<'a> = dyn Fn(&str, &[u8]) -> Result<GrpcAnswer, String> + 'a;

fn gather_schema(call: &Caller) -> Result<DescriptorPool, String> {
    let (version, services) = list_services(call)?;
    let mut open: Vec<_> = services.into_iter().map(Question::Symbol).collect();
    let (mut files, mut asked, mut size) = (BTreeMap::new(), BTreeSet::new(), 0);
    let mut calls = 0;
    while let Some(question) = open.pop() {
        calls += 1;
        if calls > MOST_CALLS || size > LARGEST_SCHEMA {
            return Err(format!(
                "its schema has more than {MOST_CALLS} files or {} MiB; name its .proto file",
                LARGEST_SCHEMA >> 20
            ));
        }
        let reply = ask(call, version, question)?.ok_or_else(refuse_silent)?;
        let mut imports = Vec::new();
        for bytes in reply.files.unwrap_or_default().descriptors {
            let file = FileDescriptorProto::decode(bytes.as_slice()).map_err(damaged)?;
            if !files.contains_key(file.name()) {
                size += bytes.len();
                imports.extend_from_slice(&file.dependency);
                files.insert(file.name().to_owned(), file);
            }
        }
        // Most send them along.
        imports.retain(|name| !files.contains_key(name) && asked.insert(name.clone()));
        open.extend(imports.into_iter().map(Question::File));
    }
    if files.is_empty() {
        return Err(
            "its reflection describes none of its services; name its .proto file".to_owned(),
        );
    }
    pool_files(files.into_values().collect())
}

/// With the version in which the instance answered.
fn list_services(call: &Caller) -> Result<(&'static str, Vec<String>), String> {
    for version in VERSIONS {
        if let Some(reply) = ask(call, version, Question::Services(String::new()))? {
            return Ok((version, reply.services.unwrap_or_default().names));
        }
    }
    Err(refuse_silent())
}

/// `None` where the instance has no reflection of this version.
fn ask(call: &Caller, version: &str, question: Question) -> Result<Option<Reply>, String> {
    let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
    let request = Request {
        question: Some(question),
    };
    let answer = call(&path, &request.encode_to_vec())?;
    match answer.status {
        Some(0) => {
            let reply = Reply::decode(answer.messages.concat().as_slice());
            reply.map(Some).map_err(damaged)
        }
        Some(NO_SUCH_METHOD) => Ok(None),
        Some(code) => Err(format!(
            "its reflection ended with {}; name its .proto file",
            ErrorKind::from_grpc_status(code).name()
        )),
        None => Err("it does not speak gRPC; check the port, or name a .proto file".to_owned()),
    }
}

fn refuse_silent() -> String {
    "it has no reflection (grpc.reflection.v1 or v1alpha); name its .proto file, or enable reflection".to_owned()
}

fn damaged(error: impl std::fmt::Display) -> String {
    format!("its reflection is damaged: {error}; name its .proto file")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use loadline_load::http2::GrpcCall;

    use super::*;

    // What `workloads/grpc` (grpc-java 1.75.0) wrote to the socket: `tests/data/README.md`.
    const SERVICES: &[u8] = include_bytes!("../../tests/data/reflection/services.bin");
    const FILES: &[u8] = include_bytes!("../../tests/data/reflection/files.bin");
    const NO_SUCH_SERVICE: &[u8] =
        include_bytes!("../../tests/data/reflection/no-such-service.bin");

    fn read(bytes: &[u8]) -> Result<GrpcAnswer, String> {
        let answer = GrpcCall::default().read_answer(bytes);
        answer.unwrap_or_else(|| Err("cut off".to_owned()))
    }

    fn asked(request: &[u8]) -> Question {
        Request::decode(request).unwrap().question.unwrap()
    }

    fn is_list(question: &Question) -> bool {
        matches!(question, Question::Services(_))
    }

    /// The schema of an instance with this version, and the number of calls.
    fn gather(version: &str, files: &[u8]) -> (Result<DescriptorPool, String>, u32) {
        let calls = Cell::new(0);
        let pool = gather_schema(&|path, request| {
            calls.set(calls.get() + 1);
            let is_known = path.contains(&format!(".{version}."));
            read(match (is_known, is_list(&asked(request))) {
                (false, _) => NO_SUCH_SERVICE,
                (true, true) => SERVICES,
                (true, false) => files,
            })
        });
        (pool, calls.get())
    }

    #[test]
    fn both_versions_give_the_methods_and_their_messages() {
        for (version, expected) in [("v1", 5), ("v1alpha", 6)] {
            let (pool, calls) = gather(version, FILES);
            assert_eq!(calls, expected);
            let pool = pool.unwrap();
            let service = pool.get_service_by_name("loadline.quotes.Quotes").unwrap();
            let names: Vec<_> = service.methods().map(|m| m.name().to_owned()).collect();
            assert_eq!(names, ["Price", "Watch"]);
            let quote = pool.get_message_by_name("loadline.quotes.Quote").unwrap();
            assert!(quote.get_field_by_name("made").is_some());
        }
    }

    #[test]
    fn an_instance_without_reflection_is_refused_with_the_way_out() {
        let (pool, calls) = gather("v2", FILES);
        assert_eq!(calls, 2);
        assert_eq!(
            pool.unwrap_err(),
            "it has no reflection (grpc.reflection.v1 or v1alpha); name its .proto file, or enable reflection"
        );
    }

    #[test]
    fn damaged_answers_are_refused() {
        for at in 0..FILES.len() {
            assert!(gather("v1", &FILES[..at]).0.is_err(), "{at}");
            let mut bytes = FILES.to_vec();
            bytes[at] ^= 0x15;
            let _ = gather("v1", &bytes).0;
        }
    }

    /// The schema of an instance with files that import one another, up to `depth`.
    fn gather_chain(depth: usize) -> Result<DescriptorPool, String> {
        let file = |nth: usize| FileDescriptorProto {
            name: Some(format!("{nth}.proto")),
            dependency: (nth < depth)
                .then(|| format!("{}.proto", nth + 1))
                .into_iter()
                .collect(),
            ..FileDescriptorProto::default()
        };
        gather_schema(&|_, request| {
            let question = asked(request);
            let names = is_list(&question).then(|| vec!["a.B".to_owned()]);
            let nth = match question {
                Question::File(name) => name.strip_suffix(".proto").unwrap().parse().unwrap(),
                _ => 0,
            };
            let descriptors = vec![file(nth).encode_to_vec()];
            let reply = Reply {
                files: Some(FilesReply { descriptors }),
                services: names.map(|names| ServicesReply { names }),
            };
            Ok(GrpcAnswer {
                status: Some(0),
                messages: vec![reply.encode_to_vec()],
            })
        })
    }

    #[test]
    fn imports_are_asked_for_and_their_number_is_bounded() {
        assert_eq!(gather_chain(3).unwrap().files().count(), 4);
        assert_eq!(
            gather_chain(usize::MAX).unwrap_err(),
            "its schema has more than 1024 files or 32 MiB; name its .proto file"
        );
    }
}
