#include "cli/scratch.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace flamewire::cli {
namespace {

constexpr std::size_t max_path = 4096;
// For the handler, which may do little: the folder, then its files.
std::array<std::array<char, max_path>, 3> paths;

void remove_all() {
    (void)::unlink(paths[1].data());
    (void)::unlink(paths[2].data());
    (void)::rmdir(paths[0].data());
}

void end_by(int signal) {
    remove_all();
    std::signal(signal, SIG_DFL);
    (void)std::raise(signal);
}

void set(std::array<char, max_path>& to, const std::string& path) {
    std::memcpy(to.data(), path.c_str(), path.size() + 1);
}

}  // namespace

Result<Scratch> Scratch::create() {
    const char* folder = std::getenv("TMPDIR");
    std::string path = folder != nullptr && folder[0] == '/' ? folder : "/tmp";
    path += "/flamewire-XXXXXX";
    if (path.size() + sizeof "/session.flw" > max_path) return fail(ErrorCode::invalid, "TMPDIR is too long");
    if (::mkdtemp(path.data()) == nullptr)
        return fail_errno("cannot make a folder for temporary files (TMPDIR names where): " + path, errno);
    Scratch scratch(path);
    set(paths[0], path);
    set(paths[1], scratch.session_file());
    set(paths[2], scratch.input_file());
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, end_by) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
    return scratch;
}

Scratch::~Scratch() {
    if (path_.empty()) return;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
    remove_all();
}

}  // namespace flamewire::cli
