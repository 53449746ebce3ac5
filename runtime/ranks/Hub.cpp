// Rank 0's side of the control channel.
#include "runtime/ranks/Hub.h"

#include "runtime/support/Shown.h"

#include <algorithm>

using namespace hydra::runtime;
using hydra::support::shown;
using namespace std::chrono_literals;

namespace {

/// A death is told before what others meet because of it, and a rank's own signal or error, which
/// may be the same everywhere, before a death.
constexpr auto kAfterLoss = 200ms, kAfterError = 1000ms;
/// Until its first step rank 0 reads what other ranks read, be it later: its own line is waited
/// for, but no run outlives an error for 5 s.
constexpr auto kMostForRankZero = 4s;

double seconds(Hub::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

} // namespace

Message Introduction::message() const {
  return MessageWriter(MessageType::hello)
      .number(version)
      .number(rank)
      .number(size)
      .number(pid)
      .text(host)
      .text(processors)
      .done();
}

Introduction Introduction::of(const Message &message) {
  if (message.type != MessageType::hello)
    support::fail("expected an introduction");
  MessageReader reader(message);
  Introduction rank;
  rank.version = reader.number();
  rank.rank = static_cast<uint32_t>(reader.number());
  rank.size = static_cast<uint32_t>(reader.number());
  rank.pid = reader.number();
  rank.host = reader.text();
  rank.processors = reader.text();
  return rank;
}

std::string hydra::runtime::describe(const Introduction &rank) {
  return fmt::format("rank {} (host {}, pid {})", rank.rank, shown(rank.host), rank.pid);
}

std::string hydra::runtime::afterStepText(int64_t step) {
  return step < 0 ? "" : fmt::format(" after step {}", step);
}

std::string hydra::runtime::diedText(const std::string &who, int64_t step) {
  return fmt::format("{} died{}: its connection broke off", who, afterStepText(step));
}

std::string hydra::runtime::silentText(const std::string &whoAndSteps, Hub::Clock::duration limit,
                                       const std::string &waiting) {
  return fmt::format("{} has not answered for {:g} s{}", whoAndSteps, seconds(limit), waiting);
}

Hub::Hub(const Introduction &own, Clock::duration limit, Clock::time_point now, Callbacks callbacks)
    : callbacks(std::move(callbacks)), limit(limit), peers(own.size), begun(now), ticked(now),
      missing(own.size - 1) {
  peers[0].who = own;
}

std::string Hub::whoText(uint32_t rank) const {
  return peers[rank].who ? describe(*peers[rank].who) : fmt::format("rank {}", rank);
}

bool Hub::arrive(const Introduction &rank, Clock::time_point now) {
  const Introduction &own = *peers[0].who;
  const auto refuse = [&](const std::string &line) {
    fail(Ending::of(line));
    return false;
  };
  if (rank.version != own.version)
    return refuse(fmt::format("{} runs version {} of hydra-run's messages and plans, rank 0 (host "
                              "{}, pid {}) version {}; use the same hydra-run everywhere",
                              describe(rank), rank.version, shown(own.host), own.pid, own.version));
  if (rank.size != own.size)
    return refuse(fmt::format("{} counts {} ranks, {} counts {}; start all of them with the same "
                              "number",
                              describe(rank), rank.size, describe(own), own.size));
  if (rank.rank == 0 || rank.rank >= own.size)
    return refuse(fmt::format("{} joins the run of {}; expected ranks 1 to {}", describe(rank),
                              describe(own), own.size - 1));
  Peer &peer = peers[rank.rank];
  if (peer.who)
    return refuse(fmt::format("{} and {} are the same rank; another run may use the same "
                              "MASTER_PORT",
                              describe(*peer.who), describe(rank)));
  peer.who = rank;
  --missing;
  if (complete())
    welcome(now);
  return true;
}

void Hub::welcome(Clock::time_point now) {
  for (Peer &peer : peers)
    peer.heard = now;
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    const Introduction &who = *peers[rank].who;
    const auto neighbours = std::ranges::count_if(
        peers, [&](const Peer &other) { return other.who->host == who.host; });
    const auto sharers = std::ranges::count_if(peers, [&](const Peer &other) {
      return other.who->host == who.host && other.who->processors == who.processors;
    });
    // If rank 0 dies, rank 1 says so, and on machines without it their first rank.
    const bool speaks =
        rank == 1 || std::none_of(peers.begin(), peers.begin() + rank,
                                  [&](auto &other) { return other.who->host == who.host; });
    callbacks.send(rank, MessageWriter(MessageType::welcome)
                             .number(neighbours)
                             .number(sharers)
                             .number(speaks ? 1 : 0)
                             .text(describe(*peers[0].who))
                             .done());
  }
}

void Hub::broadcast(const Message &message) {
  for (uint32_t rank = 0; rank < peers.size(); ++rank)
    callbacks.send(rank, message);
}

void Hub::fail(const Ending &ending) {
  if (std::exchange(ended, true))
    return;
  callbacks.over(ending);
}

void Hub::suspect(const Ending &ending, Clock::time_point now, Clock::duration patience, bool own) {
  if (!problem || now + patience < problem->due)
    problem = Problem{ending, problem ? problem->since : now, now + patience, own};
}

bool Hub::isToBeTold(const Problem &known, Clock::time_point now) const {
  const Peer &first = peers[0];
  const bool begins = first.step <= 0 && first.activity.empty() && first.votes.empty() &&
                      first.pieces.empty() && !first.bye;
  return now >= known.due && !(known.own && begins && now - known.since < kMostForRankZero);
}

void Hub::receive(uint32_t rank, const Message &message, Clock::time_point now) {
  if (ended)
    return;
  Peer &peer = peers[rank];
  peer.heard = now;
  MessageReader reader(message);
  switch (message.type) {
  case MessageType::beat:
    peer.step = std::max(peer.step, reader.number());
    peer.waiting = static_cast<double>(reader.number()) * 1e-3;
    peer.activity = reader.text();
    return;
  case MessageType::vote:
    vote(rank, reader);
    return decide();
  case MessageType::piece:
    leaving = leaving && rank > 0; // rank 0 needs the others still
    peer.pieces.push_back(reader.bytes());
    return gather();
  case MessageType::set: {
    const std::string key = reader.text();
    store[key] = reader.bytes();
    const auto waiting = waitingGets.extract(key);
    if (!waiting.empty())
      for (const uint32_t to : waiting.mapped())
        answer(to, key);
    return;
  }
  case MessageType::get: {
    const std::string key = reader.text();
    if (store.contains(key))
      answer(rank, key);
    else
      waitingGets[key].push_back(rank);
    return;
  }
  case MessageType::checkpoint:
    return broadcast(message);
  case MessageType::failed: {
    leaving = leaving && rank > 0; // rank 0 leaves to the hub what is said
    const bool follows = reader.number() != 0;
    const std::string text = reader.text();
    // Of a broken connection, the rank that is gone is told as soon as it is known.
    suspect(Ending::of(fmt::format("{}: {}", whoText(rank), text), follows), now,
            follows ? 2 * kAfterError : kAfterError, /*own=*/!follows);
    peer.bye = true; // it may close its connection
    return;
  }
  case MessageType::bye:
    if (!std::exchange(peer.bye, true) && ++goodbyes == peers.size())
      broadcast(MessageWriter(MessageType::goodbye).done());
    return;
  case MessageType::hello:
  case MessageType::seen:
  case MessageType::welcome:
  case MessageType::decision:
  case MessageType::value:
  case MessageType::taken:
  case MessageType::goodbye:
  case MessageType::over:
    support::fail("a message that ranks do not send");
  }
}

void Hub::vote(uint32_t rank, MessageReader &reader) {
  Vote vote;
  vote.signal = static_cast<int>(reader.number());
  vote.error = reader.text();
  peers[rank].step = std::max(peers[rank].step, reader.number());
  if (!vote.error.empty() && rank > 0)
    vote.error = fmt::format("{}: {}", whoText(rank), vote.error);
  peers[rank].votes.push_back(std::move(vote));
}

void Hub::decide() {
  while (std::ranges::all_of(peers, [](const Peer &peer) { return !peer.votes.empty(); })) {
    Vote decision;
    for (Peer &peer : peers) {
      if (decision.signal == 0)
        decision.signal = peer.votes.front().signal;
      if (decision.error.empty())
        decision.error = peer.votes.front().error;
      peer.votes.pop_front();
    }
    // Then rank 0 will say so itself, after it has saved.
    leaving = leaving || !decision.error.empty();
    broadcast(MessageWriter(MessageType::decision)
                  .number(decision.signal)
                  .text(decision.error)
                  .number(peers[0].step)
                  .done());
  }
}

void Hub::gather() {
  if (!std::ranges::all_of(peers, [](const Peer &peer) { return !peer.pieces.empty(); }))
    return;
  Pieces pieces;
  for (Peer &peer : peers) {
    pieces.push_back(std::move(peer.pieces.front()));
    peer.pieces.pop_front();
  }
  callbacks.gathered(std::move(pieces));
  for (uint32_t rank = 1; rank < peers.size(); ++rank)
    callbacks.send(rank, MessageWriter(MessageType::taken).done());
}

void Hub::answer(uint32_t rank, const std::string &key) {
  callbacks.send(rank, MessageWriter(MessageType::value).text(key).bytes(store[key]).done());
  if (key.starts_with(kBroadcast) && ++answers[key] + 1 == peers.size()) { // a step may have one
    store.erase(key);
    answers.erase(key);
  }
}

void Hub::lose(uint32_t rank, Clock::time_point now) {
  if (ended || peers[rank].bye)
    return;
  const auto line = [who = whoText(rank), step = peers[rank].step](int64_t proven) {
    return diedText(who, std::max(step, proven));
  };
  suspect({.line = line, .resumes = true}, now, kAfterLoss);
}

void Hub::tick(Clock::time_point now) {
  const Clock::duration pause = now - std::exchange(ticked, now);
  if (ended)
    return;
  if (pause > limit / 2) { // this process was stopped itself, and has heard nobody
    for (Peer &peer : peers)
      peer.heard = now;
    begun += pause;
  }
  if (problem && isToBeTold(*problem, now) && !leaving)
    return fail(problem->ending);
  if (!complete()) {
    if (now - begun > limit) {
      std::string names;
      for (uint32_t rank = 0; rank < peers.size(); ++rank)
        if (!peers[rank].who)
          names += fmt::format("{}{}", names.empty() ? "" : ", ", rank);
      fail(Ending::of(fmt::format("{} of {} ranks came within {:g} s; missing: {}",
                                  peers.size() - missing, peers.size(), seconds(limit),
                                  shown(names))));
    }
    return;
  }
  checkSilence(now);
  checkDeadlock();
}

void Hub::checkSilence(Clock::time_point now) {
  std::vector<std::pair<std::string, int64_t>> silent; // and their steps
  std::string waiting;
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    const Peer &peer = peers[rank];
    if (now - peer.heard > limit && !peer.bye)
      silent.emplace_back(whoText(rank), peer.step);
    else if (!peer.activity.empty())
      waiting += fmt::format("; rank {} waits in {}", rank, peer.activity);
  }
  if (silent.empty() || leaving)
    return;
  const auto line = [silent, waiting = shown(waiting, 600), limit = limit](int64_t proven) {
    std::string names;
    for (const auto &[who, step] : silent)
      names += (names.empty() ? "" : ", ") + who + afterStepText(std::max(step, proven));
    return silentText(shown(names, 400), limit, waiting);
  };
  fail({.line = line, .resumes = true});
}

void Hub::checkDeadlock() {
  std::string waiting;
  for (uint32_t rank = 0; rank < peers.size(); ++rank) {
    const Peer &peer = peers[rank];
    if (peer.activity.empty() || peer.waiting < seconds(limit))
      return;
    waiting += fmt::format("; rank {} waits in {}", rank, peer.activity);
  }
  if (!leaving)
    fail(Ending::of(
        fmt::format("no rank has got on for {:g} s{}", seconds(limit), shown(waiting, 800)), true));
}
