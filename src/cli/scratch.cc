#include "cli/scratch.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "server/session/side_files.h"

namespace flamewire::cli {
namespace {

constexpr std::size_t max_path = 4096, longest_name = 64;

// A signal handler may only use async-signal-safe functions: it unlinks prepared names, files before their folder.
struct Slot {
    std::array<std::array<char, max_path>, 3 + server::portable_files.size()> paths{};
    volatile std::sig_atomic_t used = 0;

    void remove() {
        for (std::size_t i = 0; i + 1 < paths.size(); ++i) (void)::unlink(paths[i].data());
        (void)::rmdir(paths.back().data());
        used = 0;
    }
    void set(std::size_t index, const std::string& path) {
        std::memcpy(paths[index].data(), path.c_str(), path.size() + 1);
    }
};
std::array<Slot, Scratch::most> slots;

void end_by(int signal) {
    for (Slot& slot : slots)
        if (slot.used != 0) slot.remove();
    std::signal(signal, SIG_DFL);
    (void)std::raise(signal);
}

// Signals that are ignored (nohup) stay ignored.
void on_ending_signals(void (*handler)(int)) {
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, handler) == SIG_IGN) std::signal(signal, SIG_IGN);
}

}  // namespace

Result<Scratch> Scratch::create() {
    std::size_t number = 0;
    while (number < most && slots[number].used != 0) ++number;
    if (number == most) return fail(ErrorCode::busy, "too many temporary folders");
    const char* folder = std::getenv("TMPDIR");
    std::string path = folder != nullptr && folder[0] == '/' ? folder : "/tmp";
    path += "/flamewire-XXXXXX";
    if (path.size() + longest_name > max_path) return fail(ErrorCode::invalid, "TMPDIR is too long");
    if (::mkdtemp(path.data()) == nullptr)
        return fail_errno("cannot make a folder for temporary files (TMPDIR names where): " + path, errno);
    Scratch scratch(path, number);
    Slot& slot = slots[number];
    slot.set(0, scratch.input_file());
    slot.set(1, scratch.session_file());
    for (std::size_t i = 0; i < server::portable_files.size(); ++i)
        slot.set(2 + i, server::side_file(scratch.session_file(), server::portable_files[i]));
    slot.set(slot.paths.size() - 1, path);
    slot.used = 1;
    on_ending_signals(end_by);
    return scratch;
}

std::string Scratch::session_file() const { return fmt::format("{}/{}", path_, server::stream_name); }

Scratch::~Scratch() {
    if (path_.empty()) return;
    slots[slot_].remove();
    for (const Slot& slot : slots)
        if (slot.used != 0) return;
    on_ending_signals(SIG_DFL);
}

}  // namespace flamewire::cli
