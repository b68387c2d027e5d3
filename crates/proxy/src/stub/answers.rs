//! Which answer a request gets, and how late.
//!
//! Owns the choice and the bytes of an answer, which are made once. No socket, no clock.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use loadline_analysis::random::RandomStream;
use loadline_load::profile::request_class;

use super::{LARGEST_BODY, StubAnswer, StubBody};
use crate::delay::DelayDraw;

/// Most requests with a remembered answer; others are looked up each time.
const REMEMBERED: usize = 4096;

/// Most distinct requests without an answer; others are counted together.
const NAMED: usize = 100;

const OTHERS: &str = "others";

/// How bytes are called that are no request: TLS, HTTP/2.
const MALFORMED: &str = "bytes that are no HTTP/1.1";

#[derive(Debug)]
pub(crate) struct RenderedAnswer {
    pub(crate) bytes: Vec<u8>,
    pub(crate) head: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct StubReply {
    pub(crate) rendered: Rc<RenderedAnswer>,
    /// From the end of the request until it is sent, ns.
    pub(crate) delay: u64,
}

#[derive(Debug)]
pub(crate) struct StubAnswers {
    groups: Vec<AnswerGroup>,
    none: Rc<RenderedAnswer>,
    known: HashMap<Vec<u8>, Option<usize>>,
    pub(crate) requests: u64,
    pub(crate) unanswered: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct AnswerGroup {
    pattern: loadline_load::profile::Pattern,
    members: Vec<(f64, Rc<RenderedAnswer>, Option<DelayDraw>)>,
}

impl StubAnswers {
    pub(crate) fn new(answers: &[StubAnswer]) -> Result<Self, String> {
        let mut groups: Vec<AnswerGroup> = Vec::new();
        for answer in answers {
            let rendered = Rc::new(render_answer(
                answer.status,
                &answer.headers,
                &body_bytes(&answer.body)?,
            ));
            let draw = answer.delay.as_ref().map(DelayDraw::new).transpose()?;
            let pattern = &answer.pattern;
            let known = groups.iter_mut().find(|group| group.pattern == *pattern);
            match known {
                Some(group) => {
                    let before = group.members.last().map_or(0.0, |(sum, ..)| *sum);
                    group.members.push((before + answer.weight, rendered, draw));
                }
                None => groups.push(AnswerGroup {
                    pattern: pattern.clone(),
                    members: vec![(answer.weight, rendered, draw)],
                }),
            }
        }
        Ok(Self {
            groups,
            none: Rc::new(render_answer(404, &BTreeMap::new(), b"")),
            known: HashMap::new(),
            requests: 0,
            unanswered: BTreeMap::new(),
        })
    }

    /// What a request for this path, with its query, gets; it is counted.
    pub(crate) fn reply_to(
        &mut self,
        method: &[u8],
        path: &[u8],
        random: &mut RandomStream,
    ) -> StubReply {
        self.requests += 1;
        let Some(group) = self.find_group(method, path) else {
            let class = request_class(method, path);
            self.count_unanswered(String::from_utf8_lossy(&class).into_owned());
            let rendered = Rc::clone(&self.none);
            return StubReply { rendered, delay: 0 };
        };
        let members = &self.groups[group].members;
        let all = members.last().map_or(0.0, |(sum, ..)| *sum);
        let drawn = match members.len() {
            1 => 0.0,
            _ => random.uniform() * all,
        };
        let at = members.partition_point(|(sum, ..)| *sum <= drawn);
        let (_, rendered, draw) = &members[at.min(members.len() - 1)];
        StubReply {
            rendered: Rc::clone(rendered),
            delay: draw.as_ref().map_or(0, |draw| draw.next_ns(random)),
        }
    }

    /// The path counts as it is, and with its identifiers replaced.
    fn find_group(&mut self, method: &[u8], path: &[u8]) -> Option<usize> {
        let request = [method, b" ", path].concat();
        if let Some(known) = self.known.get(&request) {
            return *known;
        }
        let class = request_class(method, path);
        let fits = |group: &AnswerGroup| {
            group.pattern.fits_request(&request) || group.pattern.fits_request(&class)
        };
        let found = self.groups.iter().position(fits);
        if self.known.len() < REMEMBERED {
            self.known.insert(request, found);
        }
        found
    }

    pub(crate) fn count_malformed(&mut self) {
        self.requests += 1;
        self.count_unanswered(MALFORMED.to_owned());
    }

    fn count_unanswered(&mut self, class: String) {
        let is_new = !self.unanswered.contains_key(&class);
        let name = if is_new && self.unanswered.len() >= NAMED {
            OTHERS.to_owned()
        } else {
            class
        };
        *self.unanswered.entry(name).or_default() += 1;
    }
}

fn body_bytes(body: &StubBody) -> Result<Vec<u8>, String> {
    match body {
        StubBody::Text(text) => Ok(text.as_bytes().to_vec()),
        StubBody::File(path) => read(path).map_err(|why| format!("{}: {why}", path.display())),
        StubBody::Filler(length) => {
            let length = usize::try_from((*length).min(LARGEST_BODY)).unwrap_or(0);
            Ok(vec![b' '; length])
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let read = file.take(LARGEST_BODY + 1).read_to_end(&mut bytes);
    read.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > LARGEST_BODY {
        Err("a body is at most 16 MiB".to_owned())
    } else {
        Ok(bytes)
    }
}

/// A status that has no body has none. Source: RFC 9110, sections 15.3.5 and 15.4.5.
fn render_answer(status: u16, headers: &BTreeMap<String, String>, body: &[u8]) -> RenderedAnswer {
    let mut head = format!("HTTP/1.1 {status} \r\n");
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    let has_body = !matches!(status, 204 | 304);
    if has_body {
        head += &format!("content-length: {}\r\n", body.len());
    }
    let mut bytes = head.into_bytes();
    let head = bytes.len();
    bytes.extend_from_slice(b"\r\n");
    if has_body {
        bytes.extend_from_slice(body);
    }
    RenderedAnswer { bytes, head }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::delay::Delay;

    fn answer(pattern: &str, status: u16, weight: f64) -> StubAnswer {
        StubAnswer {
            pattern: pattern.parse().expect("a pattern"),
            weight,
            status,
            headers: [("content-type".to_owned(), "text/plain".to_owned())].into(),
            body: StubBody::Text(format!("{status}")),
            delay: None,
        }
    }

    fn text(reply: &StubReply) -> String {
        String::from_utf8_lossy(&reply.rendered.bytes).into_owned()
    }

    #[test]
    fn the_first_pattern_counts_by_path_and_by_class() {
        let answers = [
            answer("GET /prices/7", 200, 1.0),
            answer("GET /prices/{id}", 201, 1.0),
            answer("* /prices/**", 202, 1.0),
        ];
        let mut answers = StubAnswers::new(&answers).expect("they are good");
        let mut random = RandomStream::from_seed(1);
        let mut status = |method: &str, path: &str| {
            let reply = answers.reply_to(method.as_bytes(), path.as_bytes(), &mut random);
            text(&reply)[9..12].to_owned()
        };
        assert_eq!(status("GET", "/prices/7"), "200");
        assert_eq!(status("GET", "/prices/8?day=1"), "201");
        assert_eq!(status("PUT", "/prices/8/x"), "202");
        assert_eq!(status("GET", "/stock/8"), "404");
        assert_eq!(status("GET", "/stock/9"), "404");
        assert_eq!(answers.requests, 5);
        let unanswered: Vec<_> = answers.unanswered.into_iter().collect();
        assert_eq!(unanswered, [("GET /stock/{id}".to_owned(), 2)]);
    }

    #[test]
    fn those_of_one_pattern_come_by_their_weights_and_late_as_drawn() {
        let mut slow = answer("GET /a", 503, 1.0);
        slow.delay = Some(Delay::Fixed {
            latency: Duration::from_millis(30),
        });
        let mut answers =
            StubAnswers::new(&[answer("GET /a", 200, 9.0), slow]).expect("they are good");
        let mut random = RandomStream::from_seed(1);
        let replies: Vec<StubReply> = (0..10_000)
            .map(|_| answers.reply_to(b"GET", b"/a", &mut random))
            .collect();
        let late = replies.iter().filter(|r| text(r).contains("503"));
        let late: Vec<u64> = late.map(|r| r.delay).collect();
        assert!((900..1100).contains(&late.len()), "{}", late.len());
        assert!(late.iter().all(|ns| *ns == 30_000_000));
    }

    #[test]
    fn an_answer_is_a_response() {
        let mut none = answer("GET /a", 204, 1.0);
        none.body = StubBody::Filler(3);
        let filled = StubAnswer {
            body: StubBody::Filler(3),
            ..answer("GET /b", 200, 1.0)
        };
        let mut answers = StubAnswers::new(&[none, filled]).expect("they are good");
        let mut random = RandomStream::from_seed(1);
        let a = text(&answers.reply_to(b"GET", b"/a", &mut random));
        let b = text(&answers.reply_to(b"GET", b"/b", &mut random));
        insta::assert_snapshot!(format!("{a}|{b}|").replace('\r', ""), @r"
        HTTP/1.1 204 
        content-type: text/plain

        |HTTP/1.1 200 
        content-type: text/plain
        content-length: 3

           |
        ");
    }

    #[test]
    fn a_body_that_is_not_there_is_named() {
        let gone = StubAnswer {
            body: StubBody::File("/nowhere/price.json".into()),
            ..answer("GET /a", 200, 1.0)
        };
        let refused = StubAnswers::new(&[gone]).expect_err("it is not there");
        assert!(refused.contains("/nowhere/price.json"), "{refused}");
    }

    #[test]
    fn names_of_unanswered_requests_are_bounded() {
        let mut answers = StubAnswers::new(&[]).expect("nothing is good");
        let mut random = RandomStream::from_seed(1);
        for n in 0..1000 {
            answers.reply_to(b"GET", format!("/x{n}").as_bytes(), &mut random);
        }
        assert_eq!(answers.unanswered.len(), NAMED + 1);
        assert_eq!(answers.unanswered[OTHERS], 900);
    }
}
