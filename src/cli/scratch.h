// A temporary folder of this process. It is removed with its owner, and also if SIGINT, SIGTERM or SIGHUP end the
// program.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/result.h"

namespace flamewire::cli {

class Scratch {
public:
    // Maximum number of folders at a time.
    static constexpr std::size_t most = 4;

    // Created below TMPDIR, else below /tmp.
    static Result<Scratch> create();
    Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})), slot_(other.slot_) {}
    Scratch& operator=(Scratch&& other) noexcept {
        std::swap(path_, other.path_);
        std::swap(slot_, other.slot_);
        return *this;
    }
    ~Scratch();

    [[nodiscard]] const std::string& path() const { return path_; }
    // The folder may only contain the input, and a session with the files that belong to it: no other files are
    // removed.
    [[nodiscard]] std::string session_file() const;
    [[nodiscard]] std::string input_file() const { return path_ + "/input"; }

private:
    Scratch(std::string path, std::size_t slot) : path_(std::move(path)), slot_(slot) {}
    std::string path_;
    std::size_t slot_;
};

}  // namespace flamewire::cli
