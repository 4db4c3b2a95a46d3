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

constexpr std::size_t max_path = 4096;
// For the handler, which may do little: the files, then their folder.
std::array<std::array<char, max_path>, 3 + server::travelling_files.size()> paths;

void remove_all() {
    for (std::size_t i = 0; i + 1 < paths.size(); ++i) (void)::unlink(paths[i].data());
    (void)::rmdir(paths.back().data());
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
    constexpr std::size_t longest_name = 64;
    if (path.size() + longest_name > max_path) return fail(ErrorCode::invalid, "TMPDIR is too long");
    if (::mkdtemp(path.data()) == nullptr)
        return fail_errno("cannot make a folder for temporary files (TMPDIR names where): " + path, errno);
    Scratch scratch(path);
    set(paths[0], scratch.input_file());
    set(paths[1], scratch.session_file());
    for (std::size_t i = 0; i < server::travelling_files.size(); ++i)
        set(paths[2 + i], server::side_file(scratch.session_file(), server::travelling_files[i]));
    set(paths.back(), path);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, end_by) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
    return scratch;
}

std::string Scratch::session_file() const { return fmt::format("{}/{}", path_, server::stream_name); }

Scratch::~Scratch() {
    if (path_.empty()) return;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP})
        if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
    remove_all();
}

}  // namespace flamewire::cli
