// Interned functions. Two frames belong to the same function if name, module and kind are equal. The inlined and the
// outlined form of one function are two entries, which a call tree distinguishes. They share one group, which is one
// row in a table of functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "profile/store/id_index.h"
#include "profile/store/model.h"

namespace flamewire::profile {

class FunctionTable {
public:
    FunctionTable() : functions_(1), group_(1), shown_(1) {}

    // Stores `file` and `line` if the function is new or had none.
    FunctionId intern(const Function& function);

    [[nodiscard]] const Function& operator[](FunctionId id) const { return functions_[id]; }
    [[nodiscard]] std::size_t size() const { return functions_.size(); }
    // The same id, below size(), for all functions with equal name and module.
    [[nodiscard]] FunctionId group(FunctionId id) const { return group_[id]; }
    // The form of a group to display: the outlined one if there is one.
    [[nodiscard]] const Function& shown(FunctionId group) const { return functions_[shown_[group]]; }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    void join_group(FunctionId id);

    std::vector<Function> functions_;
    std::vector<FunctionId> group_;
    std::vector<FunctionId> shown_;  // by group
    IdIndex index_, group_index_;
};

}  // namespace flamewire::profile
