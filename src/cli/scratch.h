// A folder of this run for files that nobody keeps. It goes with its owner, also when SIGINT, SIGTERM or SIGHUP end the
// program.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/result.h"

namespace flamewire::cli {

class Scratch {
public:
    // As many as there can be at a time.
    static constexpr std::size_t most = 4;

    // Below TMPDIR, else /tmp.
    static Result<Scratch> create();
    Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})), slot_(other.slot_) {}
    Scratch& operator=(Scratch&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~Scratch();

    [[nodiscard]] const std::string& path() const { return path_; }
    // Nothing may be in it but the input, and a session with the files that travel with it.
    [[nodiscard]] std::string session_file() const;
    [[nodiscard]] std::string input_file() const { return path_ + "/input"; }

private:
    Scratch(std::string path, std::size_t slot) : path_(std::move(path)), slot_(slot) {}
    std::string path_;
    std::size_t slot_;
};

}  // namespace flamewire::cli
