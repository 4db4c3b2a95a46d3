// A folder of this run for files that nobody keeps. It goes with its owner, also when SIGINT, SIGTERM or SIGHUP end the
// program. One at a time.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace flamewire::cli {

class Scratch {
public:
    // Below TMPDIR, else /tmp.
    static Result<Scratch> create();
    Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    Scratch& operator=(Scratch&& other) noexcept {
        std::swap(path_, other.path_);
        return *this;
    }
    ~Scratch();

    [[nodiscard]] const std::string& path() const { return path_; }
    // Nothing may be in it but the input, and a session with the files that travel with it.
    [[nodiscard]] std::string session_file() const;
    [[nodiscard]] std::string input_file() const { return path_ + "/input"; }

private:
    explicit Scratch(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

}  // namespace flamewire::cli
