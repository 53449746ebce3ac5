// Forked processes over shared counters; a pipe a process brings the reports.
#include "test/fuzz/differential/Workers.h"

#include "runtime/support/Error.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <new>

namespace hydra::test {

using support::fail;

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t interrupted = 0;

int64_t nanoseconds() { return std::chrono::nanoseconds(Clock::now().time_since_epoch()).count(); }

/// The status of a process whose job another one is to go on with.
constexpr int kGoOn = 3;

/// What a process is doing, seen by its parent.
struct Progress {
  std::atomic<uint64_t> job;
  std::atomic<uint32_t> part;
  std::atomic<int64_t> since; ///< nanoseconds; 0: between two parts
};

struct Shared {
  std::atomic<uint64_t> next; ///< job
  std::atomic<bool> stop;
  Progress progress[1]; ///< of every process
};

/// Anonymous memory that children share.
class SharedMemory {
public:
  explicit SharedMemory(unsigned processes)
      : bytes(sizeof(Shared) + processes * sizeof(Progress)),
        memory(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (memory == MAP_FAILED)
      fail("no shared memory: {}", support::errnoText(errno));
  }
  ~SharedMemory() { ::munmap(memory, bytes); }
  SharedMemory(const SharedMemory &) = delete;
  SharedMemory &operator=(const SharedMemory &) = delete;
  Shared *operator->() const { return static_cast<Shared *>(memory); }

private:
  size_t bytes;
  void *memory;
};

void writeAll(int descriptor, const std::string &text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(descriptor, text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR)
      ::_exit(1);
    done += static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
}

/// job, part, outcome, severity and detail in one line.
std::string lineOf(const Report &report) {
  return fmt::format("{} {} {} {} {}\n", report.job, report.part,
                     static_cast<int>(report.verdict.outcome), report.verdict.severity,
                     support::oneLine(report.verdict.detail));
}

Report reportOf(const std::string &line) {
  Report report;
  int outcome = 0, used = 0;
  unsigned long long job = 0;
  if (std::sscanf(line.c_str(), "%llu %u %d %lf%n", &job, &report.part, &outcome,
                  &report.verdict.severity, &used) == 4) {
    report.job = job;
    report.verdict.outcome = static_cast<Outcome>(outcome);
    report.verdict.detail = line.substr(std::min(line.size(), static_cast<size_t>(used) + 1));
  }
  return report;
}

class Pool {
public:
  Pool(JobRunner &runner, uint64_t first, uint64_t last, const WorkerOptions &options,
       const std::function<void(const Report &)> &take)
      : runner(runner), last(last), options(options), take(take), shared(options.processes),
        children(options.processes) {
    shared->next = first;
  }

  uint64_t run() {
    const auto begin = Clock::now();
    struct sigaction old{}, now{};
    now.sa_handler = [](int) { interrupted = 1; };
    ::sigaction(SIGINT, &now, &old);
    interrupted = 0;
    for (size_t i = 0; i < children.size(); ++i)
      start(i, Resume{});
    while (std::any_of(children.begin(), children.end(),
                       [](const Child &child) { return child.pid > 0; })) {
      wait();
      if (options.total.count() > 0 && Clock::now() - begin > options.total)
        shared->stop = true;
      if (interrupted)
        for (const Child &child : children)
          if (child.pid > 0)
            ::kill(child.pid, SIGKILL);
      for (size_t i = 0; i < children.size(); ++i)
        watch(i);
    }
    ::sigaction(SIGINT, &old, nullptr);
    return done;
  }

private:
  /// Where a process goes on with the job of one that died.
  struct Resume {
    bool valid = false;
    uint64_t job = 0;
    uint32_t part = 0;
  };

  struct Child {
    pid_t pid = 0;
    int pipe = -1, errors = -1; ///< reports; what it prints
    std::string unread;
    bool hung = false;
  };

  void start(size_t index, Resume resume) {
    Child &child = children[index];
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      fail("no pipe: {}", support::errnoText(errno));
    const int errors = ::memfd_create("errors", MFD_CLOEXEC);
    shared->progress[index].since = 0;
    std::fflush(nullptr);
    const pid_t pid = ::fork();
    if (pid < 0)
      fail("cannot start a process: {}", support::errnoText(errno));
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::signal(SIGINT, SIG_IGN);
      ::dup2(errors, STDERR_FILENO);
      ::dup2(errors, STDOUT_FILENO);
      limitProcess();
      keepToPair(index);
      work(shared->progress[index], resume, ends[1], errors);
      ::_exit(0); // nothing that the parent set up is taken down here
    }
    ::close(ends[1]);
    child = {pid, ends[0], errors, {}, false};
  }

  void limitProcess() const {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    if (options.memory) {
      const rlimit memory{options.memory, options.memory};
      ::setrlimit(RLIMIT_AS, &memory);
    }
  }

  /// Two processes share two processors: enough for plans of two threads to run side by side, and
  /// thread pools as large as a machine would only be in each other's way.
  static void keepToPair(size_t index) {
    cpu_set_t all, pair;
    if (::sched_getaffinity(0, sizeof all, &all) != 0)
      return;
    std::vector<int> processors;
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &all))
        processors.push_back(i);
    CPU_ZERO(&pair);
    const size_t first = index / 2 * 2 % processors.size();
    for (size_t i = first; i < std::min(first + 2, processors.size()); ++i)
      CPU_SET(processors[i], &pair);
    (void)::sched_setaffinity(0, sizeof pair, &pair);
  }

  /// In the child.
  void work(Progress &progress, Resume resume, int pipe, int errors) {
    runner.begin();
    for (uint64_t count = 0; count < options.lifetime && !shared->stop; ++count) {
      uint64_t job = resume.job;
      uint32_t first = resume.part;
      if (!resume.valid) {
        job = shared->next.fetch_add(1);
        first = 0;
        if (job >= last)
          return;
      }
      resume.valid = false;
      // The list of parts belongs to the first one: drawing it may fail as well.
      progress.job = job;
      progress.part = first;
      progress.since = nanoseconds();
      uint32_t parts = first + 1;
      for (uint32_t part = first; part < parts; ++part) {
        progress.part = part;
        progress.since = nanoseconds();
        (void)!::ftruncate(errors, 0);
        ::lseek(errors, 0, SEEK_SET);
        Report report{job, part, {}};
        bool drawn = false;
        try {
          parts = runner.parts(job);
          drawn = true;
          if (part < parts)
            report.verdict = runner.run(job, part);
        } catch (const std::exception &error) {
          report.verdict = {Outcome::Crashed, error.what()};
        }
        if (part >= parts)
          break;
        writeAll(pipe, lineOf(report));
        if (!drawn) // nothing of this job can be done
          break;
        if (isFinding(report.verdict.outcome)) {
          progress.part = part + 1;
          ::_exit(kGoOn);
        }
      }
      progress.since = 0;
      writeAll(pipe, "done\n");
    }
  }

  void wait() {
    std::vector<pollfd> polled;
    for (const Child &child : children)
      if (child.pid > 0)
        polled.push_back({child.pipe, POLLIN, 0});
    constexpr int milliseconds = 20;
    ::poll(polled.data(), polled.size(), milliseconds);
  }

  void watch(size_t index) {
    Child &child = children[index];
    if (child.pid <= 0)
      return;
    Progress &progress = shared->progress[index];
    const int64_t since = progress.since;
    if (since != 0 && !child.hung &&
        std::chrono::nanoseconds(nanoseconds() - since) > options.limit) {
      child.hung = true;
      ::kill(child.pid, SIGKILL);
    }
    int status = 0;
    const bool ended = ::waitpid(child.pid, &status, WNOHANG) == child.pid;
    read(child, ended);
    if (!ended)
      return;
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    Resume resume;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kGoOn) {
      resume = {true, progress.job, progress.part};
    } else if (failed && !interrupted && progress.since != 0) {
      const Report report{progress.job,
                          progress.part,
                          {child.hung ? Outcome::Hung : Outcome::Crashed,
                           child.hung
                               ? fmt::format("no end after {} s", options.limit.count() / 1000.0)
                               : causeOf(status, child.errors)}};
      take(report);
      resume = {true, report.job, report.part + 1};
    }
    ::close(child.pipe);
    ::close(child.errors);
    child = {};
    if (interrupted)
      return;
    if (resume.valid || (shared->next < last && !shared->stop))
      start(index, resume);
  }

  /// Takes the reports that are there; all of them when the process has ended.
  void read(Child &child, bool ended) {
    char buffer[4096];
    pollfd ready{child.pipe, POLLIN, 0};
    while (::poll(&ready, 1, 0) > 0) {
      const ssize_t n = ::read(child.pipe, buffer, sizeof(buffer));
      if (n <= 0)
        break;
      child.unread.append(buffer, static_cast<size_t>(n));
      if (!ended && n < static_cast<ssize_t>(sizeof(buffer)))
        break;
    }
    size_t at = 0;
    for (size_t end; (end = child.unread.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = child.unread.substr(at, end - at);
      if (line == "done")
        ++done;
      else
        take(reportOf(line));
    }
    child.unread.erase(0, at);
  }

  /// The signal, and the most telling line that the process printed.
  static std::string causeOf(int status, int errors) {
    std::string text(4096, '\0');
    const ssize_t n = ::pread(errors, text.data(), text.size(), 0);
    text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
    std::string cause = WIFSIGNALED(status) ? ::strsignal(WTERMSIG(status))
                                            : fmt::format("status {}", WEXITSTATUS(status));
    std::string best;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      if (best.empty() || (line.find("ERROR") != std::string::npos) ||
          line.find("Assertion") != std::string::npos ||
          line.find("runtime error") != std::string::npos)
        best = line;
    }
    return best.empty() ? cause : cause + ": " + best;
  }

  JobRunner &runner;
  uint64_t last;
  const WorkerOptions &options;
  const std::function<void(const Report &)> &take;
  SharedMemory shared;
  std::vector<Child> children;
  uint64_t done = 0;
};

} // namespace

uint64_t runJobs(JobRunner &runner, uint64_t first, uint64_t last, const WorkerOptions &options,
                 const std::function<void(const Report &)> &take) {
  return Pool(runner, first, last, options, take).run();
}

} // namespace hydra::test
