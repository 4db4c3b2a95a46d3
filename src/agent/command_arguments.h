// Typed access to the arguments of a command. Null counts as absent. The first wrong argument is the problem of the
// command: further problems are ignored, and values read after it may be missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/control_groups.h"
#include "base/result.h"
#include "wire/control.h"

namespace flamewire::agent {

class Arguments {
public:
    // Refers to `args`.
    explicit Arguments(const rapidjson::Value& args) : args_(args) {}

    std::optional<std::uint64_t> number(const char* name, std::uint64_t lowest, std::uint64_t highest);
    std::optional<std::uint32_t> number32(const char* name, std::uint32_t lowest, std::uint32_t highest);
    std::optional<std::string> text(const char* name);
    std::optional<bool> flag(const char* name);
    // A list of events, or one string in the grammar of --events.
    std::optional<std::string> events(const char* name);
    // "pid" alone, or "pids".
    std::vector<std::uint32_t> pids();
    // all, cpus (a list, or text as "0-3,6"), cgroup or cgroups, container.
    WideTarget wide();

    void refuse(Error problem);
    void refuse(std::string sentence) { refuse(Error{ErrorCode::invalid, 0, std::move(sentence)}); }
    // Fails with the problem, if there is one.
    [[nodiscard]] Result<bool> check() const;

private:
    [[nodiscard]] const rapidjson::Value* find(const char* name) const;
    std::uint64_t number_of(const char* name, const rapidjson::Value& value, std::uint64_t lowest,
                            std::uint64_t highest);

    const rapidjson::Value& args_;
    std::optional<Error> problem_;
};

}  // namespace flamewire::agent
