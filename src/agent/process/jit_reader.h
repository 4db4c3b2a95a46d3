// The thread that reads what programs say of the code they made: it may wait for disks and for file systems of others,
// the sampler must not. Two mailboxes, so neither waits for the other. Under a deterministic System (base/system.h) there is
// no thread: the caller reads the files itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/jit_code.h"

namespace flamewire::agent {

struct JitQuestions {
    std::vector<JitProcess> processes;  // new ones, known ones that mapped a jitdump, and, with pid 0, what to forget
    std::vector<JitWant> wants;
    std::vector<ModuleHandle> often_unnamed;  // see JitCode::often_unnamed
    [[nodiscard]] bool empty() const { return processes.empty() && wants.empty() && often_unnamed.empty(); }
};

struct JitAnswers {
    std::vector<JitAnswer> answers;
    std::size_t bytes = 0;  // of the bodies in them
    std::vector<wire::Notice> notices;
    std::uint64_t known_until_ns = 0;  // all that was written before this was read; 0: not known since the last ones
};

class JitReader {
public:
    explicit JitReader(std::string proc_root);
    // A read that hangs is left to itself.
    ~JitReader();
    JitReader(const JitReader&) = delete;
    JitReader& operator=(const JitReader&) = delete;

    // Takes the questions, unless the last ones still wait: then they stay with the caller. The first ones start the
    // thread.
    void ask(JitQuestions& questions);
    // Makes the reader look now, and waits for that for `patience_ns` at most.
    void look_now(std::uint64_t patience_ns);
    // What was found out since the last call.
    JitAnswers take();
    // Waits until all that was asked is answered as far as it can be, or `patience_ns` is over.
    void settle(std::uint64_t patience_ns);

private:
    struct Shared;
    std::shared_ptr<Shared> shared_;
};

}  // namespace flamewire::agent
