// The thread behind the control channel: connects ranks, passes messages on, notices silence.
#include "runtime/ranks/ChannelState.h"

#include "runtime/ranks/HeldSignal.h"
#include "runtime/report/Units.h"
#include "runtime/support/Shown.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstdio>

using namespace hydra::runtime;
using namespace std::chrono_literals;
using asio::ip::tcp;
using hydra::support::fail;
using hydra::support::shown;
using Clock = Hub::Clock;

namespace {

/// Of the messages; ranks with another one do not understand each other.
constexpr int64_t kVersion = 4;

/// How long a process that is told to end may take.
constexpr auto kGrace = 2s;

std::string hostName() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// The processors that this process may use.
std::string processorSet() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::string text;
  if (::sched_getaffinity(0, sizeof set, &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        text += fmt::format("{} ", cpu);
  return text;
}

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

std::string waitText(const Channel::Wait &wait) {
  if (!wait.what)
    return "";
  if (!wait.axis) // more than one collective
    return wait.what;
  return fmt::format("{} {}{} over {}, {}", wait.what, wait.number,
                     *wait.place ? fmt::format(" ({})", wait.place) : "", wait.axis,
                     hydra::report::bytesText(wait.bytes));
}

} // namespace

Channel::State::State(const World &world, std::chrono::milliseconds limit)
    : world(world), limit(limit),
      own{kVersion, world.rank, world.size, hostName(), ::getpid(), processorSet()}, acceptor(io),
      timer(io), connections(world.size), parent(world.launched ? ::getppid() : 0) {}

Channel::State::~State() {
  io.stop();
  if (thread.joinable())
    thread.join();
}

void Channel::State::begin() {
  if (world.rank == 0)
    listen();
  else
    connect();
  scheduleTick();
  const Clock::duration most = limit;
  thread = std::thread([this] { io.run(); });
  std::unique_lock lock(mutex);
  const bool answered = changed.wait_for(lock, most, [&] { return seen || ended; });
  if (!answered && world.rank > 0)
    failWithoutRankZero(
        fmt::format("what listens at {}:{} does not answer as rank 0 of such a run would; choose "
                    "another MASTER_PORT",
                    shown(world.address), world.port));
  changed.wait(lock, [&] { return welcomed || ended; });
  if (welcomed)
    return;
  lineTaken = true;
  lock.unlock();
  flush(); // the others learn it before the connections close
  if (!ending.line)
    throw RunEnded();
  throw support::Error(ending.line(-1));
}

void Channel::State::listen() {
  const auto refuse = [&](const asio::error_code &error, const char *wrong = "MASTER_PORT") {
    if (error)
      fail("rank 0 cannot listen at {}:{}: {}; choose another {}", shown(world.address), world.port,
           error.message(), wrong);
  };
  asio::error_code error;
  if (world.listener >= 0) {
    acceptor.assign(tcp::v4(), world.listener, error);
    refuse(error);
  } else {
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(world.address, std::to_string(world.port), error);
    refuse(error, "MASTER_ADDR");
    // A name may stand for another address on each machine, that of the own one for a loopback:
    // only what is the same everywhere binds.
    tcp::endpoint endpoint = *found.begin();
    asio::error_code isName;
    asio::ip::make_address(world.address, isName);
    if (!endpoint.address().is_loopback() || (isName && world.address != "localhost"))
      endpoint.address(endpoint.address().is_v6() ? asio::ip::address(asio::ip::address_v6::any())
                                                  : asio::ip::address_v4::any());
    acceptor.open(endpoint.protocol(), error);
    refuse(error);
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor.bind(endpoint, error);
    refuse(error);
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    refuse(error);
  }
  seen = true;
  hub = std::make_unique<Hub>(
      own, limit, Clock::now(),
      Hub::Callbacks{
          .send = [this](uint32_t rank, const Message &m) { send(rank, m); },
          .gathered =
              [this](Hub::Pieces pieces) {
                const std::lock_guard lock(mutex);
                gathered.push_back(std::move(pieces));
                changed.notify_all();
              },
          .over = [this](const Ending &why) { conclude(why); }});
  accept();
}

void Channel::State::accept() {
  acceptor.async_accept([this](const asio::error_code &error, tcp::socket socket) {
    if (error == asio::error::operation_aborted)
      return;
    if (!error) {
      const auto connection = std::make_shared<Connection>(std::move(socket));
      connection->start(
          [this, from = std::weak_ptr(connection)](const Message &message) {
            receive(from.lock(), message);
          },
          [this, from = connection.get()] {
            const auto place =
                std::ranges::find(connections, from, &std::shared_ptr<Connection>::get);
            if (place != connections.end())
              hub->lose(static_cast<uint32_t>(place - connections.begin()), Clock::now());
          });
    }
    accept();
  });
}

void Channel::State::receive(const std::shared_ptr<Connection> &connection,
                             const Message &message) {
  const auto place = std::ranges::find(connections, connection);
  if (place != connections.end())
    return hub->receive(static_cast<uint32_t>(place - connections.begin()), message, Clock::now());
  const Introduction rank = Introduction::of(message); // throws: a stranger
  connection->send({MessageType::seen, {}});
  const bool fits = rank.rank > 0 && rank.rank < world.size && !connections[rank.rank];
  if (fits)
    connections[rank.rank] = connection;
  {
    const std::lock_guard lock(mutex);
    const std::string address = connection->localAddress(); // where others may reach this rank
    asio::error_code ignored;
    if (localAddress.empty() || asio::ip::make_address(localAddress, ignored).is_loopback())
      localAddress = address;
  }
  if (hub->arrive(rank, Clock::now()))
    connection->trust();
  else
    connection->send({MessageType::over, {}});
}

void Channel::State::connect() {
  const Clock::time_point until = Clock::now() + limit;
  std::string problem = "no answer";
  while (Clock::now() < until) {
    tcp::resolver resolver(io);
    asio::error_code error;
    for (const auto &found : resolver.resolve(world.address, std::to_string(world.port), error)) {
      tcp::socket socket(io);
      bool done = false;
      error = asio::error::timed_out;
      socket.async_connect(found.endpoint(), [&](const asio::error_code &result) {
        error = result;
        done = true;
      });
      while (!done && Clock::now() < until)
        io.run_one_until(until);
      if (!done) { // the handler must not outlive what it refers to
        asio::error_code ignored;
        socket.close(ignored);
        while (!done)
          io.run_one();
        error = asio::error::timed_out;
      }
      if (error)
        continue;
      const auto connection = std::make_shared<Connection>(std::move(socket));
      connection->trust();
      connections[0] = connection;
      localAddress = connection->localAddress();
      heard = Clock::now();
      connection->start(
          [this](const Message &message) {
            heard = Clock::now();
            deliver(message);
          },
          [this] { lost = Clock::now(); });
      connection->send(own.message());
      return;
    }
    problem = error.message();
    std::this_thread::sleep_for(20ms);
  }
  failWithoutRankZero(fmt::format("cannot reach rank 0 at {}:{} within {:g} s: {}",
                                  shown(world.address), world.port, seconds(limit), problem));
}

/// All other ranks of this machine meet the same.
void Channel::State::failWithoutRankZero(const std::string &problem) const {
  if (!world.speaks)
    throw RunEnded();
  fail("rank {}: {}", world.rank, problem);
}

void Channel::State::toHub(Message message) {
  onThread([this, message = std::move(message)] {
    if (world.rank == 0)
      hub->receive(0, message, Clock::now());
    else
      connections[0]->send(message);
  });
}

void Channel::State::send(uint32_t rank, const Message &message) {
  if (rank == 0)
    deliver(message);
  else if (connections[rank])
    connections[rank]->send(message);
}

void Channel::State::deliver(const Message &message) {
  MessageReader reader(message);
  if (message.type == MessageType::over)
    return conclude({});
  const std::lock_guard lock(mutex);
  switch (message.type) {
  case MessageType::seen:
    seen = true;
    break;
  case MessageType::welcome:
    neighbours = static_cast<uint32_t>(reader.number());
    sharers = static_cast<uint32_t>(reader.number());
    speaks = reader.number() != 0;
    rankZero = reader.text();
    welcomed = true;
    break;
  case MessageType::decision: {
    Vote decision;
    decision.signal = static_cast<int>(reader.number());
    decision.error = reader.text();
    stepOfRankZero = std::max(stepOfRankZero, reader.number());
    decisions.push_back(std::move(decision));
    break;
  }
  case MessageType::value: {
    const std::string key = reader.text();
    values[key] = reader.bytes();
    break;
  }
  case MessageType::taken:
    ++taken;
    break;
  case MessageType::checkpoint:
    checkpoint.emplace();
    checkpoint->step = reader.number();
    checkpoint->path = reader.text();
    break;
  case MessageType::goodbye:
    goodbye = true;
    break;
  case MessageType::beat:
    stepOfRankZero = std::max(stepOfRankZero, reader.number());
    return;
  case MessageType::hello:
  case MessageType::vote:
  case MessageType::set:
  case MessageType::get:
  case MessageType::piece:
  case MessageType::failed:
  case MessageType::bye:
  case MessageType::over:
    fail("a message that rank 0 does not send");
  }
  changed.notify_all();
}

void Channel::State::conclude(const Ending &why) {
  {
    const std::lock_guard lock(mutex);
    if (ended || goodbye)
      return;
    ended = true;
    ending = why;
  }
  changed.notify_all();
  deadline = Clock::now() + kGrace;
  for (const auto &connection : connections)
    if (world.rank == 0 && connection)
      connection->send({MessageType::over, {}});
}

void Channel::State::scheduleTick() {
  const Clock::duration period = std::clamp<Clock::duration>(limit / 20, 10ms, 100ms);
  timer.expires_after(period);
  timer.async_wait([this](const asio::error_code &error) {
    if (error)
      return;
    tick(Clock::now());
    scheduleTick();
  });
}

void Channel::State::tick(Clock::time_point now) {
  if (deadline && now > *deadline) {
    if (const std::string last = takeLine(); !last.empty())
      std::fprintf(stderr, "hydra-run: %s\n", last.c_str());
    std::fflush(stdout);
    ::_exit(1);
  }
  noteStop(now);
  watchParent();
  passSignal();
  if (now - beaten > std::clamp<Clock::duration>(limit / 8, 20ms, 2s)) {
    beaten = now;
    beat();
  }
  if (hub)
    hub->tick(now);
  else
    watchRankZero(now);
}

/// A process that was stopped itself, by Ctrl-Z for example, has heard nobody meanwhile, and the
/// time is none that it has waited.
void Channel::State::noteStop(Clock::time_point now) {
  const Clock::duration pause = now - std::exchange(ticked, now);
  if (pause <= limit / 2)
    return;
  heard = now;
  const std::lock_guard lock(mutex);
  waitBegin = std::min(waitBegin + pause, now);
}

/// mpirun and torchrun, killed, leave their ranks behind. These end as if the signal had reached
/// them.
void Channel::State::watchParent() {
  if (parent == 0 || ::getppid() == parent)
    return;
  parent = 0;
  ::kill(::getpid(), SIGTERM);
}

/// A SIGTERM that came before anything was known to be wrong ends this rank; later, a line is due.
void Channel::State::passSignal() {
  const std::optional<Clock::time_point> came = HeldSignal::since();
  if (!came)
    return;
  const std::optional<Clock::time_point> trouble = hub ? hub->troubledSince() : lost;
  std::unique_lock lock(mutex);
  const bool due = ended ? !lineTaken && ending.line : trouble && *trouble < *came;
  lock.unlock();
  if (!due)
    HeldSignal::pass();
}

void Channel::State::beat() {
  MessageWriter message(MessageType::beat);
  {
    const std::lock_guard lock(mutex);
    const auto waiting = std::chrono::duration_cast<std::chrono::milliseconds>(
        wait.what ? Clock::now() - waitBegin : Clock::duration::zero());
    message.number(step).number(waiting.count()).text(waitText(wait));
  }
  const Message done = message.done();
  if (!hub)
    return connections[0]->send(done);
  hub->receive(0, done, Clock::now());
  for (uint32_t rank = 1; rank < world.size; ++rank)
    send(rank, done);
}

std::optional<SavedStep> Channel::State::lookForCheckpoint() {
  std::unique_lock lock(mutex);
  const auto look = newestCheckpoint;
  lock.unlock(); // a folder may be far away
  const std::optional<SavedStep> seen = look ? look() : std::nullopt;
  lock.lock();
  return seen ? seen : checkpoint;
}

void Channel::State::watchRankZero(Clock::time_point now) {
  constexpr auto afterLoss = 200ms; // of a signal to all, the own one comes first
  Ending why{.line = {}, .resumes = true};
  {
    const std::lock_guard lock(mutex);
    if (ended || goodbye)
      return;
    // Rank 0 is a little earlier to see that others are silent.
    if (lost && now - *lost > afterLoss)
      why.line = [who = rankZero, step = stepOfRankZero](int64_t proven) {
        return diedText(who, std::max(step, proven));
      };
    else if (!lost && now - heard > limit + limit / 4)
      why.line = [who = rankZero, step = stepOfRankZero, limit = limit,
                  waiting = wait.what ? fmt::format("; rank {} waits in {}", world.rank,
                                                    waitText(wait))
                                      : ""](int64_t proven) {
        return silentText(who + afterStepText(std::max(step, proven)), limit, waiting);
      };
    else
      return;
  }
  conclude(speaks ? why : Ending{});
}

std::string Channel::State::takeLine() {
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(lineTaken, true) || !ending.line)
      return "";
  }
  if (!ending.resumes) // which no longer changes
    return ending.line(-1);
  const std::optional<SavedStep> newest = lookForCheckpoint();
  const std::string line = ending.line(newest ? newest->step : -1);
  if (newest)
    return fmt::format("{}; resume from {}", line, newest->path.string());
  const std::lock_guard lock(mutex);
  return std::max(step, stepOfRankZero) > 0 ? line + "; there is no checkpoint" : line;
}

void Channel::State::flush() {
  for (const Clock::time_point until = Clock::now() + 1s; Clock::now() < until;) {
    bool sent = false, asked = false;
    onThread([&] {
      const std::lock_guard lock(mutex);
      sent = std::ranges::all_of(connections, [](const auto &c) { return !c || c->sent(); });
      asked = true;
      changed.notify_all();
    });
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return asked; });
    if (sent)
      return;
    lock.unlock();
    std::this_thread::sleep_for(1ms);
  }
}
