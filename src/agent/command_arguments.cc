#include "agent/command_arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/option_values.h"
#include "agent/options.h"

namespace flamewire::agent {

void Arguments::refuse(Error problem) {
    if (!problem_) problem_ = std::move(problem);
}

Result<bool> Arguments::check() const {
    if (problem_) return std::unexpected(*problem_);
    return true;
}

const rapidjson::Value* Arguments::find(const char* name) const {
    if (!args_.IsObject()) return nullptr;
    const auto member = args_.FindMember(name);
    return member == args_.MemberEnd() || member->value.IsNull() ? nullptr : &member->value;
}

std::uint64_t Arguments::number_of(const char* name, const rapidjson::Value& value, std::uint64_t lowest,
                                   std::uint64_t highest) {
    if (value.IsUint64() && value.GetUint64() >= lowest && value.GetUint64() <= highest) return value.GetUint64();
    refuse(fmt::format("{} must be a whole number from {} to {}", name, lowest, highest));
    return lowest;
}

std::optional<std::uint64_t> Arguments::number(const char* name, std::uint64_t lowest, std::uint64_t highest) {
    const rapidjson::Value* value = find(name);
    if (value == nullptr) return std::nullopt;
    return number_of(name, *value, lowest, highest);
}

std::optional<std::uint32_t> Arguments::number32(const char* name, std::uint32_t lowest, std::uint32_t highest) {
    const auto found = number(name, lowest, highest);
    return found ? std::optional(static_cast<std::uint32_t>(*found)) : std::nullopt;
}

std::optional<std::string> Arguments::text(const char* name) {
    const rapidjson::Value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->IsString()) return std::string(value->GetString(), value->GetStringLength());
    refuse(fmt::format("{} must be a string", name));
    return std::nullopt;
}

std::optional<bool> Arguments::flag(const char* name) {
    const rapidjson::Value* value = find(name);
    if (value == nullptr) return std::nullopt;
    if (value->IsBool()) return value->GetBool();
    refuse(fmt::format("{} must be true or false", name));
    return std::nullopt;
}

std::vector<std::uint32_t> Arguments::pids() {
    std::vector<std::uint32_t> found;
    if (const rapidjson::Value* list = find("pids")) {
        if (!list->IsArray() || list->Size() > limits::max_pids) {
            refuse(fmt::format("pids must be a list of at most {} process ids", limits::max_pids));
            return found;
        }
        for (const rapidjson::Value& value : list->GetArray()) {
            const auto pid = static_cast<std::uint32_t>(number_of("pids", value, 1, limits::max_pid));
            if (std::ranges::find(found, pid) == found.end()) found.push_back(pid);
        }
    }
    const std::optional<std::uint32_t> single = number32("pid", 1, limits::max_pid);
    if (single && std::ranges::find(found, *single) == found.end()) found.insert(found.begin(), *single);
    return found;
}

std::optional<std::string> Arguments::events(const char* name) {
    const rapidjson::Value* value = find(name);
    if (value == nullptr || value->IsString()) return text(name);
    std::string joined;
    bool only_names = value->IsArray();
    for (rapidjson::SizeType i = 0; only_names && i < value->Size(); ++i) {
        const rapidjson::Value& event = (*value)[i];
        only_names = event.IsString() && event.GetStringLength() != 0;
        if (!only_names) break;
        if (!joined.empty()) joined += ',';
        joined.append(event.GetString(), event.GetStringLength());
    }
    if (!only_names) refuse(fmt::format("{} must be a list of event names", name));
    return joined;
}

WideTarget Arguments::wide() {
    WideTarget target;
    target.all = flag("all").value_or(false);
    if (const rapidjson::Value* list = find("cpus"); list != nullptr && list->IsArray()) {
        for (const rapidjson::Value& value : list->GetArray())
            target.cpus.push_back(static_cast<std::uint32_t>(number_of("cpus", value, 0, limits::max_cpu)));
        std::ranges::sort(target.cpus);
        const auto again = std::ranges::unique(target.cpus);
        target.cpus.erase(again.begin(), again.end());
    } else if (const auto given = text("cpus")) {
        if (auto parsed = parse_cpus("cpus", *given, target.cpus); !parsed) refuse(std::move(parsed).error());
    }
    if (const rapidjson::Value* list = find("cgroups")) {
        if (!list->IsArray() || list->Size() > limits::max_cgroups) {
            refuse(fmt::format("cgroups must be a list of at most {} paths", limits::max_cgroups));
            return target;
        }
        for (const rapidjson::Value& value : list->GetArray()) {
            if (value.IsString() && value.GetStringLength() != 0)
                target.cgroups.emplace_back(value.GetString(), value.GetStringLength());
            else
                refuse("cgroups must be a list of paths");
        }
    }
    if (auto single = text("cgroup"); single && !single->empty()) target.cgroups.push_back(*std::move(single));
    target.container = text("container").value_or("");
    if (auto checked = check_wide(target); !checked) refuse(std::move(checked).error());
    return target;
}

}  // namespace flamewire::agent
