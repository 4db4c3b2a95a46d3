// Where the walk gets its rules: the caches first, then the module's tables.
#pragma once

#include <cstddef>
#include <cstdint>

#include "unwind/arch/arch.h"
#include "unwind/tables/rule.h"
#include "unwind/tables/rule_cache.h"
#include "unwind/tables/table_work.h"
#include "unwind/walk/open_modules.h"
#include "unwind/walk/unwinder.h"

namespace flamewire::unwind {

class RuleSource {
public:
    RuleSource(ModuleFiles& files, OpenTables open_tables, std::size_t memory_bytes);

    // The rule for code of `arch`. If the work is spent: none, which is not cached. Valid until the next call.
    const Rule& rule(const RuleKey& key, Arch arch) {
        const Rule* cached = cache_.find(key);
        return cached != nullptr ? *cached : compile(key, arch);
    }
    // Whether a call or a signal handler can return to `pc`, as stored in memory (ARM: with the Thumb bit). `key` is
    // for that return address. Reads the code once per key.
    bool may_return_to(const RuleKey& key, Arch arch, std::uint64_t pc);
    // The row of a rule of kind `row` or `inferred_row`. nullptr if it is no longer available. Valid until the next
    // call.
    const FrameRow* row(const Rule& rule, const RuleKey& key, Arch arch);

    // Whether the pc is in the program's entry function, which is the outermost frame even if no table marks it.
    bool is_entry(ModuleId module, std::uint64_t pc);

    OpenModules& modules() { return modules_; }
    TableWork& work() { return work_; }
    void forget(ModuleId module);
    [[nodiscard]] std::uint64_t compiled() const { return compiled_; }
    [[nodiscard]] std::size_t memory_bytes() const;

private:
    const Rule& compile(const RuleKey& key, Arch arch);
    // Compiles without the cache.
    Rule make(const RuleKey& key, const ArchInfo& arch);
    // Sets after_even_call and after_odd_call.
    void find_call(const RuleKey& key, const ArchInfo& arch, Rule& rule);

    TableWork work_;
    RuleCache cache_;
    RowTable rows_;
    OpenModules modules_;
    std::uint64_t compiled_ = 0;
    Rule no_rule_;
};

}  // namespace flamewire::unwind
