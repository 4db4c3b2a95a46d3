#include "cli/view_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

#include "base/cgroup_path.h"
#include "profile/query/query.h"

namespace flamewire::cli {

void add_view_options(CLI::App& command, views::Parameters& view) {
    command.add_option("-e,--event", view.event, "the event to show (default: all that have samples)")
        ->type_name("NAME");
    command
        .add_option_function<double>(
            "--start", [&view](double seconds) { view.start_ms = seconds * 1000; },
            "from this second of the session on")
        ->type_name("SECONDS");
    command
        .add_option_function<double>(
            "--end", [&view](double seconds) { view.end_ms = seconds * 1000; }, "until this second")
        ->type_name("SECONDS");
    command.add_option("-p,--pid", view.pids, "these processes only (repeatable, or with commas)")
        ->type_name("PID")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_option("-t,--tid", view.tids, "these threads only")
        ->type_name("TID")
        ->delimiter(',')
        ->allow_extra_args(false);
    const auto place = [&](const char* name, std::vector<std::string>& names, const char* help, const char* type) {
        command.add_option(name, names, help)->type_name(type)->delimiter(',')->allow_extra_args(false);
    };
    place("--container", view.containers, "processes of these containers only, by id or its first digits, or by name",
          "ID");
    place("--pod", view.pods, "processes of these pods only", "UID");
    place("--cgroup", view.cgroups, "processes of this cgroup and those below it", "PATH");
}

void add_group_option(CLI::App& command, std::string& group) {
    command
        .add_option(
            "--group", group,
            "a root frame for each process, thread, container or cpu, in call trees, folded stacks and pictures")
        ->type_name("BY")
        ->check(CLI::IsMember({"none", "process", "thread", "container", "cpu"}));
}

Result<bool> check_places(const views::Parameters& parameters, const profile::Store& store) {
    struct Place {
        std::string_view what;
        const std::vector<std::string>& wanted;
        bool (*names)(std::string_view wanted, std::string_view has);
        std::string (*of)(const profile::Process&);
    };
    const Place places[] = {
        {"container", parameters.containers, names_id,
         [](const profile::Process& process) { return std::string(process.container_id); }},
        {"pod", parameters.pods, names_id,
         [](const profile::Process& process) { return parse_cgroup_path(process.cgroup).pod_uid; }},
        {"cgroup", parameters.cgroups, names_cgroup,
         [](const profile::Process& process) { return std::string(process.cgroup); }},
    };
    constexpr std::size_t shown = 8;
    for (const Place& place : places) {
        if (place.wanted.empty()) continue;
        std::set<std::string> has;
        for (const profile::Process& process : store.processes())
            if (std::string one = place.of(process); !one.empty()) has.insert(std::move(one));
        for (const std::string& wanted : place.wanted) {
            if (std::ranges::any_of(has, [&](const std::string& one) { return place.names(wanted, one); })) continue;
            std::string list;
            for (const std::string& one : has | std::views::take(shown)) list += (list.empty() ? "" : ", ") + one;
            if (has.size() > shown) list += fmt::format(" and {} more", has.size() - shown);
            return fail(ErrorCode::not_found,
                        fmt::format("no process of the profile is in {} {:.200}; there {}", place.what, wanted,
                                    list.empty() ? "is none" : "are " + list));
        }
    }
    return true;
}

Result<std::vector<views::View>> views_of(const server::Session& session, const views::Parameters& parameters) {
    const std::uint64_t start_ns = session.status().start_ns();
    return session.read([&](const profile::Store& store) -> Result<std::vector<views::View>> {
        std::vector<views::View> views;
        TRY(check_places(parameters, store));
        if (!parameters.event.empty()) {
            views.push_back(TRY(resolve_view(parameters, store, start_ns)));
            return views;
        }
        for (profile::EventId event = 1; event < store.events().size(); ++event) {
            if (store.total(event).samples == 0) continue;
            views::Parameters one = parameters;
            one.event = store.events()[event].name;
            views.push_back(TRY(resolve_view(one, store, start_ns)));
        }
        return views;
    });
}

}  // namespace flamewire::cli
