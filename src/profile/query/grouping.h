// Trees with a root frame for each process, thread, container or CPU.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/query/query.h"

namespace flamewire::profile {

enum class GroupBy : std::uint8_t { none, process, thread, container, cpu };
// Parses the name of a GroupBy. An empty text is GroupBy::none; nullopt for any other text.
std::optional<GroupBy> parse_group(std::string_view text);

// The kind of these root frames, which are not code. Their `name` is an index into the names of the groups.
inline constexpr auto group_frame = static_cast<FrameKind>(5);

struct GroupedTree {
    CallTree tree;
    std::vector<std::string> groups;
    [[nodiscard]] std::string_view name(const Store& store, const Function& function) const {
        return function.kind == group_frame ? groups[function.name] : store.string(function.name);
    }
};
// Paths of `options` begin with the group. GroupBy::none gives the plain tree.
GroupedTree grouped_tree(const Store& store, const Filter& filter, GroupBy by, const TreeOptions& options = {});

// The process, thread, container or CPU of a row, as a name.
struct Lane;
class Grouping {
public:
    // Must not outlive the store. `by` must not be none.
    Grouping(const Store& store, GroupBy by);
    ~Grouping();

    // An index into names(). Lanes with the same name share an entry, for example if a process calls exec with the same
    // program.
    std::uint32_t of(const Lane& lane);
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

private:
    struct Known;
    [[nodiscard]] std::string name_of(const Lane& lane) const;

    const Store& store_;
    GroupBy by_;
    std::vector<std::string> names_;
    std::unique_ptr<Known> known_;
};

}  // namespace flamewire::profile
