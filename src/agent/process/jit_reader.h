// The thread that reads descriptions of JIT code. It may block on disks and foreign file systems, which the sampler
// must not. Two mailboxes ensure that neither side waits for the other. Under a deterministic System (base/system.h)
// there is no thread: the caller reads the files itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/jit_code.h"

namespace flamewire::agent {

struct JitQuestions {
    std::vector<JitProcess> processes;  // new ones, known ones that mapped a jitdump, and, with pid 0, those to forget
    std::vector<JitRequest> wants;
    std::vector<ModuleHandle> often_unnamed;  // see JitCode::often_unnamed
    [[nodiscard]] bool empty() const { return processes.empty() && wants.empty() && often_unnamed.empty(); }
};

struct JitAnswers {
    std::vector<JitAnswer> answers;
    std::size_t bytes = 0;  // of the bodies in them
    std::vector<wire::Notice> notices;
    std::uint64_t known_until_ns = 0;  // all that was written before this was read; 0: no news
};

class JitReader {
public:
    explicit JitReader(std::string proc_root);
    // Does not wait for the thread: a read that hangs continues on its own.
    ~JitReader();
    JitReader(const JitReader&) = delete;
    JitReader& operator=(const JitReader&) = delete;

    // Takes the questions, unless the previous ones are still queued: then they stay with the caller. The first
    // questions start the thread.
    void ask(JitQuestions& questions);
    // Makes the reader poll now, and waits at most `patience_ns` for that.
    void poll_now(std::uint64_t patience_ns);
    // Returns what was found since the last call.
    JitAnswers take();
    // Waits until all questions are answered as far as possible, or `patience_ns` has passed.
    void settle(std::uint64_t patience_ns);

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace flamewire::agent
