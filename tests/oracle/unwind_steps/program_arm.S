@ Hand-written functions with call frame information, in Thumb and in ARM state.
        .syntax unified
        .text
        .cfi_sections .debug_frame
        .thumb
        .thumb_func
        .globl  assembly_pushes
        .type   assembly_pushes, %function
assembly_pushes:
        .fnstart
        .cfi_startproc
        push    {r4, r5, lr}
        .save   {r4, r5, lr}
        .cfi_adjust_cfa_offset 12
        .cfi_rel_offset r4, 0
        .cfi_rel_offset r5, 4
        .cfi_rel_offset lr, 8
        sub     sp, #20
        .pad    #20
        .cfi_adjust_cfa_offset 20
        mov     r4, r0
        bl      leaf
        add     r0, r4
        add     sp, #20
        .cfi_adjust_cfa_offset -20
        pop     {r4, r5, pc}
        .cfi_endproc
        .fnend
        .size   assembly_pushes, .-assembly_pushes

        .arm
        .globl  assembly_moves_cfa
        .type   assembly_moves_cfa, %function
assembly_moves_cfa:
        .fnstart
        .cfi_startproc
        push    {r6, lr}
        .save   {r6, lr}
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset r6, 0
        .cfi_rel_offset lr, 4
        mov     r6, sp
        .setfp  r6, sp
        .cfi_def_cfa_register r6
        sub     sp, sp, #100
        bic     sp, sp, #63
        bl      leaf
        mov     sp, r6
        .cfi_def_cfa_register sp
        pop     {r6, pc}
        .cfi_endproc
        .fnend
        .size   assembly_moves_cfa, .-assembly_moves_cfa

        .thumb
        .thumb_func
        .globl  assembly_calls
        .type   assembly_calls, %function
assembly_calls:
        .fnstart
        .cfi_startproc
        str     lr, [sp, #-8]!
        .pad    #4
        .save   {lr}
        .cfi_adjust_cfa_offset 8
        .cfi_rel_offset lr, 0
        mov     r2, r0
        mov     r0, r1
        blx     r2
        ldr     lr, [sp], #8
        .cfi_adjust_cfa_offset -8
        .cfi_restore lr
        bx      lr
        .cfi_endproc
        .fnend
        .size   assembly_calls, .-assembly_calls
        .section .note.GNU-stack, "", %progbits
