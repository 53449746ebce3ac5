// What the program asks of the control channel, and waits for.
#include "runtime/ranks/Channel.h"

#include "runtime/ranks/ChannelState.h"
#include "runtime/support/Shown.h"

using namespace hydra::runtime;
using hydra::support::fail;
using hydra::support::shown;

Channel::Channel(const World &world, std::chrono::milliseconds limit)
    : state(std::make_unique<State>(world, limit)) {
  state->begin();
}

Channel::~Channel() = default;

uint32_t Channel::rank() const { return state->world.rank; }
uint32_t Channel::size() const { return state->world.size; }

std::string Channel::name() const { return describe(state->own); }

void Channel::post(const Vote &vote) {
  MessageWriter message(MessageType::vote);
  message.number(vote.signal).text(vote.error);
  {
    const std::lock_guard lock(state->mutex);
    message.number(state->step);
  }
  state->toHub(message.done());
}

Vote Channel::collect() {
  const State::Waiting waiting(*state, "a decision of all ranks");
  const auto lock = state->await([&] { return !state->decisions.empty(); });
  Vote decision = std::move(state->decisions.front());
  state->decisions.pop_front();
  return decision;
}

std::vector<std::vector<std::byte>> Channel::gather(std::span<const std::byte> bytes) {
  state->toHub(MessageWriter(MessageType::piece).bytes(bytes).done());
  const State::Waiting waiting(*state, "what all ranks hand in");
  if (rank() > 0) {
    const auto lock = state->await([&] { return state->taken > 0; });
    --state->taken;
    return {};
  }
  const auto lock = state->await([&] { return !state->gathered.empty(); });
  Hub::Pieces pieces = std::move(state->gathered.front());
  state->gathered.pop_front();
  return pieces;
}

std::vector<std::byte> Channel::broadcast(std::span<const std::byte> bytes) {
  const std::string key = fmt::format("{}{}", Hub::kBroadcast, state->broadcasts++);
  if (rank() > 0) {
    std::vector<std::byte> value = get(key);
    const std::lock_guard lock(state->mutex);
    state->values.erase(key); // nobody asks again
    return value;
  }
  set(key, {bytes.begin(), bytes.end()});
  return {bytes.begin(), bytes.end()};
}

void Channel::agree(const std::vector<Claim> &claims) {
  MessageWriter list(MessageType::piece);
  list.text(name()).number(static_cast<int64_t>(claims.size()));
  for (const Claim &claim : claims)
    list.text(claim.name).text(claim.value).number(static_cast<int64_t>(claim.group));
  struct First {
    std::string who, value;
  };
  std::map<std::pair<std::string, int64_t>, First> groups;
  std::string problem;
  for (std::vector<std::byte> &piece : gather(list.done().body)) {
    const Message theirs{MessageType::piece, std::move(piece)};
    MessageReader reader(theirs);
    const std::string who = reader.text();
    bool known = reader.number() == static_cast<int64_t>(claims.size());
    for (size_t i = 0; known && i < claims.size(); ++i) {
      const std::string what = reader.text(), value = reader.text();
      known = what == claims[i].name;
      const auto &[first, theirFirst] =
          *groups.try_emplace({what, reader.number()}, First{who, value}).first;
      if (problem.empty() && theirFirst.value != value)
        problem = fmt::format("{} has {} {}, {} has {}", theirFirst.who, what,
                              shown(theirFirst.value.empty() ? "none" : theirFirst.value), who,
                              shown(value.empty() ? "none" : value));
    }
    if (!known)
      fail("{} runs another hydra-run than {}", who, name());
  }
  decide(problem);
}

void Channel::noteStep(int64_t step) {
  const std::lock_guard lock(state->mutex);
  state->step = step;
}

void Channel::noteCheckpoint(const SavedStep &checkpoint) {
  state->toHub(MessageWriter(MessageType::checkpoint)
                   .number(checkpoint.step)
                   .text(checkpoint.path.string())
                   .done());
}

void Channel::lookForCheckpoints(std::function<std::optional<SavedStep>()> newest) {
  const std::lock_guard lock(state->mutex);
  state->newestCheckpoint = std::move(newest);
}

void Channel::set(const std::string &key, const std::vector<std::byte> &value) {
  state->toHub(MessageWriter(MessageType::set).text(key).bytes(value).done());
}

std::vector<std::byte> Channel::get(const std::string &key) {
  {
    const std::lock_guard lock(state->mutex);
    if (const auto known = state->values.find(key); known != state->values.end())
      return known->second;
  }
  state->toHub(MessageWriter(MessageType::get).text(key).done());
  const auto lock = state->await([&] { return state->values.contains(key); });
  return state->values.at(key);
}

std::string Channel::localAddress() const {
  const std::lock_guard lock(state->mutex);
  return state->localAddress;
}

std::string Channel::host() const { return state->own.host; }

void Channel::setLimit(std::chrono::milliseconds limit) {
  state->onThread([this, limit] {
    state->limit = limit;
    if (state->hub)
      state->hub->setLimit(limit);
  });
}

uint32_t Channel::sharers() const {
  const std::lock_guard lock(state->mutex);
  return state->sharers;
}

uint32_t Channel::neighbours() const {
  const std::lock_guard lock(state->mutex);
  return state->neighbours;
}

void Channel::waitIn(const Wait &wait) {
  const std::lock_guard lock(state->mutex);
  state->beginWait(wait);
}

void Channel::work() {
  const std::lock_guard lock(state->mutex);
  state->wait = {};
}

void Channel::leave() {
  if (rank() == 0)
    state->onThread([this] { state->hub->leave(); });
}

void Channel::finish() {
  state->toHub(MessageWriter(MessageType::bye).done());
  state->await([&] { return state->goodbye; });
  state->flush();
}

std::string Channel::end(const std::exception &error) {
  const auto isOver = [&] {
    const std::lock_guard lock(state->mutex);
    return state->ended;
  };
  const bool follows = dynamic_cast<const CommunicationError *>(&error) != nullptr;
  if (!isOver()) {
    if (rank() == 0 && !follows) { // what rank 0 says itself needs no other line
      const std::string line = error.what();
      state->onThread([this, line] { state->conclude(Ending::of(line)); });
    } else {
      state->toHub(
          MessageWriter(MessageType::failed).number(follows ? 1 : 0).text(error.what()).done());
    }
    state->awaitEnd();
  }
  state->flush();
  return state->takeLine();
}
